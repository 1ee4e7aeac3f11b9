"""The `trainledger report` command: a page, a PDF and an evidence pack of one publication."""
