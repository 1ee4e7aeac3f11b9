"""The published comparison of a workload on GPU and on Trainium, in the terminal."""
