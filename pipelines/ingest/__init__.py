"""Reads what the sources deliver: bills, training runs and the inventory of what was bought."""
