"""From the embedded points to every point that was given: vertices, then outliers."""

from __future__ import annotations

import numpy as np

from ltenet.correspondence import UNMATCHED
from ltenet.correspondence.algebra import MapArrays
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.candidates import Candidate
from ltenet.matching.cleaning import Cleaned
from ltenet.matching.dense import Carrier, Landing, land


def to_every_vertex(best: Candidate, scores: FloatArray) -> tuple[Landing, FloatArray]:
    """Extend map and scores (n,) from the embedded points to all points of the source.

    Returns
    -------
    The target points of each source point, and its score (N,).
    """
    refined = best.refined
    if best.source.sample.complete and best.target.sample.complete:
        indices = refined.indices.numpy()  # (N,)
        nearest = np.where(indices >= 0, indices, refined.neighbors[:, 0].numpy())  # (N,)
        weights = refined.weights.double().numpy()  # (N, K)
        return Landing(nearest, refined.neighbors.numpy(), weights), scores
    places = refined.positions.double().numpy()  # (n, 3)
    if not best.source.sample.complete:
        points = best.source.points.double().numpy()  # (n, 3)
        places, scores = Carrier(points, places, scores).carry(best.source.all_points())
    return land(places, best.target.all_points()), scores


def with_outliers(arrays: MapArrays, source: Cleaned, target: Cleaned) -> MapArrays:
    """Extend a map of the inliers to all points: outliers have neither partner nor neighbours."""
    if not source.outliers and not target.outliers:
        return arrays
    assert arrays.scores is not None
    assert arrays.neighbors is not None
    assert arrays.weights is not None
    count, k = len(source.given), arrays.neighbors.shape[1]
    indices, scores = np.full(count, UNMATCHED), np.zeros(count)  # (N,), (N,)
    neighbors, weights = np.zeros((count, k), dtype=np.int64), np.zeros((count, k))  # (N, K)
    partners = target.inliers[arrays.indices]  # (n,)
    indices[source.inliers] = np.where(arrays.matched, partners, UNMATCHED)
    scores[source.inliers] = arrays.scores
    neighbors[source.inliers] = target.inliers[arrays.neighbors]
    weights[source.inliers] = arrays.weights
    return MapArrays(indices, scores, neighbors, weights)
