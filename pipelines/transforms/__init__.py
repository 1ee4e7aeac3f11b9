"""Core tables that SQL says badly; pure Polars, one module per table."""
