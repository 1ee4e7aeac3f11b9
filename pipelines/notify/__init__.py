"""Notices to people: monthly reports, failed checks and builds, anomalies and budgets, to Slack and by mail."""
