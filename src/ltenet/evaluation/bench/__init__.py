"""Benchmarks: predict once, score from the cache, report."""
