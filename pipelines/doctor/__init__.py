"""Examines every configured source: what works, what is missing, and what could not be checked."""
