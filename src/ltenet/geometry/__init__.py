"""Points and surfaces in numpy: neighbours, rotations, normals, areas, ways along a surface."""
