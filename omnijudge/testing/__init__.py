"""Help for testing judges and benchmarks, ours and those from outside."""
