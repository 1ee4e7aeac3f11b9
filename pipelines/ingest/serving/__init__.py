"""Servers of models and their traffic, from any kind of source in one form."""
