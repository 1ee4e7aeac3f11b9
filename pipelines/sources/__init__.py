"""Reads what the sources deliver: bills, training runs, reservations, commitments and registrations."""
