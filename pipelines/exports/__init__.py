"""What leaves the house in somebody else's format."""
