"""Looks at every configured source and says what it finds, what is missing, and what it could not check."""
