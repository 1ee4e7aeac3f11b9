"""Turns the sql/ folder into runnable models."""
