"""Reads what was bought or declared: reservations, commitments and registrations."""
