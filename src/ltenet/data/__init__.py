"""Shapes to learn from and to test on: generated bodies, benchmark readers, pairs."""
