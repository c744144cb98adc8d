"""Pictures of shapes in numpy, without a graphics card."""
