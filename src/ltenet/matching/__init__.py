"""From two shapes to a correspondence of every point."""
