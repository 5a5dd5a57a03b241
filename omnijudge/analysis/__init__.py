"""What is made of finished runs: comparisons, sensitivity, agreement of judges, correction."""
