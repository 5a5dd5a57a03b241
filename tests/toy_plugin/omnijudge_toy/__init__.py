"""A toy benchmark and a toy engine for omnijudge."""
