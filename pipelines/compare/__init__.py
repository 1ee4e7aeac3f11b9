"""One workload on GPU and on Trainium side by side in a terminal, from the published comparison."""
