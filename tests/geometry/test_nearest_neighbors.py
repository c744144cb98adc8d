from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ltenet.geometry.neighbors import nearest_neighbors


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_by_brute_force(k: int) -> None:
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(20, 3)), rng.normal(size=(9, 3))
    apart = cdist(queries, points)  # (9, 20)
    found = nearest_neighbors(points, queries, k)
    count = min(k, 20)
    assert found.indices.shape == found.distances.shape == (9, count)
    np.testing.assert_array_equal(found.indices, np.argsort(apart, axis=1)[:, :count])
    np.testing.assert_allclose(found.distances, np.sort(apart, axis=1)[:, :count])
    again = nearest_neighbors(KDTree(points), queries, k)
    np.testing.assert_array_equal(again.indices, found.indices)
