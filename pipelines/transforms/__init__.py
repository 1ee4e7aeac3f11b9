"""Core tables that SQL expresses badly; pure Polars, one module per table."""
