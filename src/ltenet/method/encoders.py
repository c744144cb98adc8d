"""The embedding networks by name: the method is not tied to one of them."""

from __future__ import annotations

from ltenet.method.encoder import DGCNN, EncoderConfig
from ltenet.method.pointnet import PointNet
from ltenet.method.spectral import SpectralNet

Encoder = DGCNN | PointNet | SpectralNet

ENCODERS: dict[str, type[DGCNN] | type[PointNet] | type[SpectralNet]] = {
    "dgcnn": DGCNN,
    "pointnet": PointNet,
    "spectral": SpectralNet,
}


def make_encoder(config: EncoderConfig) -> Encoder:
    """Return a new network of the configured kind."""
    return ENCODERS[config.kind](config)
