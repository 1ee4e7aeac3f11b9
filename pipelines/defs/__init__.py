"""Dagster's coat over the builder: assets, checks, partitions, resources and the schedule."""
