"""Learned systems other than ours: their networks and losses, trained by the same loop."""
