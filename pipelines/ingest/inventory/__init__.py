"""Reads what was bought, offered or declared: capacity, commitments, invoices and registrations."""
