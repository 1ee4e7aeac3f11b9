"""Brings a configuration and a warehouse of an older version to this one: `trainledger migrate`."""
