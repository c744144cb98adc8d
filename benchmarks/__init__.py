"""Measurements against a plain reference; each module prints JSON."""
