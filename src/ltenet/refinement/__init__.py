"""One pair as tensors, and what improves its map without labels."""
