"""Intervals, comparisons and agreement over metrics that are functions of sums."""
