"""Finds the billing exports of a folder or bucket and writes a first trainledger.toml."""
