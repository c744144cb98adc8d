"""What a map is good for: colours, labels, scalars, landmarks, textures and meshes follow it."""
