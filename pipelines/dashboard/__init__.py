"""The dashboard: pages over the published marts, served on loopback or written as files."""
