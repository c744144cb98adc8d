"""Many shapes: batches of pairs, landmarks from several templates, consistent maps, atlases."""
