"""Results of the published evaluator: read, checked, and turned into judgements."""
