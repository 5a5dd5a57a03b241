"""Numba kernels on NumPy arrays; no Arrow, no files, nothing of omnijudge."""
