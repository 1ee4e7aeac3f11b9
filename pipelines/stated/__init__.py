"""What people state in the configuration and neither bill nor runs tell: `[decisions]`, and `[terms]` with AWS."""
