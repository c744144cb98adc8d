"""Training: configuration, the visible loop, objectives, validation, checkpoints, run folders."""
