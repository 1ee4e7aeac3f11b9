"""Stores tables and publications, on disk or in S3."""
