"""Reads training runs from any tracker into one set of tables; one file per tracker."""
