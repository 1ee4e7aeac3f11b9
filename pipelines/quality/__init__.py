"""Table contracts from expectations/ and the checks that guard a staged table before it is committed."""
