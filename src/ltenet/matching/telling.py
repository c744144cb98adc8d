"""What a match tells beside the map: its details, and warnings about weights, shapes and map."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from ltenet import __version__
from ltenet.geometry.winding import is_inside_out
from ltenet.matching.candidates import REVERSED, Candidate
from ltenet.matching.cleaning import Cleaned
from ltenet.matching.confidence import read_calibration
from ltenet.matching.config import MatchConfig
from ltenet.matching.networks import Networks

log = logging.getLogger(__name__)


def details(best: Candidate, other: Candidate | None, config: MatchConfig) -> dict[str, Any]:
    """How the map of `best` was made, as plain values; `other` may be right instead."""
    frames = {
        f"{side}_certainty": round(prepared.frame.certainty, 3)
        for side, prepared in (("source", best.source), ("target", best.target))
        if prepared.frame is not None
    }
    sides = [best.source.sample.cleaned, best.target.sample.cleaned]
    sought = config.refine != "none"  # without refinement only one way is followed
    symmetry = "ambiguous" if other is not None else "clear"
    return {
        "version": __version__,
        **asdict(config),
        "model": best.networks.name,
        "calibrated": read_calibration(best.networks.folder).fitted,
        "embedded": [len(best.source.sample.rows), len(best.target.sample.rows)],
        "outliers": [side.outliers for side in sides],
        "inside_out": [is_inside_out(side.given.points, side.given.faces) for side in sides],
        **frames,
        "upright": best.target.rotation.round(6).tolist(),
        "direction_probability": round(best.probability, 3),
        "symmetry": symmetry if sought else None,
        "other_probability": None if other is None else round(other.probability, 3),
        "energy": round(best.refined.energy, 4),
        "mirrored": round(best.refined.mirrored, 4),
        "orientation_reversed": best.refined.mirrored > REVERSED,
        "refinement_accepted": best.refined.accepted,
    }


def warn_of_map(best: Candidate, other: Candidate | None) -> None:
    """Warn about a map that turns the shape inside out, or that has a rival."""
    if best.refined.mirrored > REVERSED:
        log.warning(
            "the map reverses orientation: %.0f %% of the regions are turned inside out, so "
            "left and right, or front and back, may be exchanged",
            100 * best.refined.mirrored,
        )
    if other is not None:
        log.warning(
            "sides or ends cannot be told apart: another map has a probability of %.2f; `ltenet "
            "match --other FILE` keeps it, and known pairs decide",
            other.probability,
        )


def warn_of_weights(networks: Networks, config: MatchConfig) -> None:
    """Warn about weights without the files that matching relies on."""
    if networks.aligns_only:
        return
    turned = networks.orienter is not None or networks.frameless or networks.relative
    if not turned and config.orient != "none":
        log.warning(
            "%s: these weights have no orientation network: both shapes must stand upright (y up) "
            "and face the same way",
            networks.name,
        )
    if not read_calibration(networks.folder).fitted and config.threshold > 0:
        log.warning(
            "%s: these weights are not calibrated: probabilities are a guess", networks.name
        )


def warn_of_shape(cleaned: Cleaned, *, mirror: bool) -> None:
    """Warn about outliers and about meshes turned inside out, unless the mirror explains that."""
    shape = cleaned.given
    if cleaned.outliers:
        log.warning(
            "%s: %d of %d points are outliers and stay unmatched",
            shape.name,
            cleaned.outliers,
            len(shape),
        )
    if not mirror and is_inside_out(shape.points, shape.faces):
        log.warning(
            "%s: the faces look inwards: the mesh is turned inside out or mirrored (see --mirror)",
            shape.name,
        )
