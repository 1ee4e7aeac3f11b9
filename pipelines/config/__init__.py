"""Reads trainledger.toml and the environment into frozen models; nothing else reads either."""
