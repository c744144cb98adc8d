from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.errors import InputError
from ltenet.method import edgeconv, plain
from ltenet.method.encoder import DGCNN, EncoderConfig

SMALL = EncoderConfig(widths=(8, 12, 16), dimension=10, neighbors=6)


def network(config: EncoderConfig = SMALL, *, seed: int = 0) -> DGCNN:
    torch.manual_seed(seed)
    encoder = DGCNN(config).double()
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            # Trained statistics, and scales of both signs: the case in which maxima turn to minima.
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
            torch.nn.init.normal_(module.running_mean)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
    return encoder


def points(batch: int = 3, count: int = 40, *, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, count, 3, generator=generator, dtype=torch.float64)


def plain_twin(encoder: DGCNN) -> plain.DGCNN:
    """Return the plain network with the same weights and statistics, in the same mode."""
    config = encoder.config
    twin = plain.DGCNN(config.widths, config.dimension, config.neighbors)
    twin.to(encoder.head.weight.dtype).load_state_dict(encoder.state_dict())
    return twin.train(encoder.training)


@pytest.mark.parametrize("block", [1 << 17, 50])  # one block of rows, or many
@pytest.mark.parametrize("training", [True, False])
def test_outputs_gradients_and_statistics_are_those_of_the_plain_network(
    training: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edgeconv, "_BLOCK_FLOATS", block)
    ours = network().train(training)
    twin = plain_twin(ours)
    shapes = points().requires_grad_()
    twins = shapes.detach().clone().requires_grad_()
    grad = torch.randn(3, 40, 10, dtype=torch.float64)
    output = ours(shapes)
    expected = twin(twins)
    torch.testing.assert_close(output, expected, rtol=1e-11, atol=1e-11)
    output.backward(grad)
    expected.backward(grad)
    torch.testing.assert_close(shapes.grad, twins.grad, rtol=1e-9, atol=1e-9)
    for (name, mine), other in zip(ours.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-9, atol=1e-9, msg=name)
    for (name, mine), other in zip(ours.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-11, msg=name)


def test_the_paper_network_agrees_in_single_precision() -> None:
    torch.manual_seed(0)
    encoder = DGCNN().eval()
    assert sum(p.numel() for p in encoder.parameters()) == 1_512_000 + 3_904
    shapes = torch.randn(2, 128, 3)
    with torch.no_grad():
        expected = plain_twin(encoder)(shapes)
        torch.testing.assert_close(encoder(shapes), expected, rtol=1e-4, atol=1e-5)


def test_both_networks_begin_with_the_same_weights() -> None:
    torch.manual_seed(0)
    ours = DGCNN().state_dict()
    torch.manual_seed(0)
    theirs = plain.DGCNN().state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("training", [True, False])
def test_gradcheck(training: bool) -> None:
    encoder = network(EncoderConfig(widths=(4, 5), dimension=3, neighbors=4)).train(training)
    shapes = points(2, 12).requires_grad_()
    graphs = encoder.graphs_of(shapes)  # fixed: the choice of neighbours has no derivative
    assert torch.autograd.gradcheck(lambda x: encoder(x, graphs), (shapes,))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_reordering_the_points_reorders_the_features(seed: int, training: bool) -> None:
    encoder = network().train(training)
    shapes = points(seed=seed)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(encoder(shapes[:, order]), encoder(shapes)[:, order])


def test_shapes_of_different_sizes_share_one_pass() -> None:
    encoder = network().eval()
    large, small = points(1, 40)[0], points(1, 25, seed=1)[0]
    together = encoder([large, small])
    torch.testing.assert_close(together[0], encoder(large[None])[0])
    torch.testing.assert_close(together[1], encoder(small[None])[0])
    trained = encoder.train()([large, small])
    assert [f.shape for f in trained] == [(40, 10), (25, 10)]


def test_evaluation_approaches_training_when_the_statistics_are_the_batch() -> None:
    encoder = network(EncoderConfig((8, 12, 16), 10, 6, momentum=0.5)).train()
    shapes = points()
    with torch.no_grad():
        for _ in range(40):
            trained = encoder(shapes)
        # Running variances are unbiased, batch variances are not: equal up to 1 / edges.
        torch.testing.assert_close(encoder.eval()(shapes), trained, rtol=0.02, atol=0.02)


def test_dynamic_graph_finds_neighbors_in_feature_space() -> None:
    shapes = points()
    static, dynamic = network(), network(EncoderConfig((8, 12, 16), 10, 6, dynamic=True))
    dynamic.load_state_dict(static.state_dict())
    with torch.no_grad():
        first = torch.cat([static.eval().layers[0](s, static.graphs_of([s])[0]) for s in shapes])
        by_hand = static.layers[1](first, static.graphs_of(first.split(40))[1])
        seen = []
        dynamic.eval().layers[1].register_forward_hook(lambda m, i, out: seen.append(out))
        dynamic(shapes)
        torch.testing.assert_close(seen[0], by_hand)
        assert not torch.allclose(dynamic(shapes), static(shapes))


@pytest.mark.parametrize("dimension", [32, 1024])
def test_width_depth_and_dimension_are_free(dimension: int) -> None:
    encoder = DGCNN(EncoderConfig(widths=(5, 7), dimension=dimension, neighbors=3))
    assert encoder(torch.randn(2, 9, 3)).shape == (2, 9, dimension)


def test_duplicated_points_have_equal_features() -> None:
    encoder = network().eval()
    half = points(1, 20)
    features = encoder(torch.cat([half, half], dim=1))
    torch.testing.assert_close(features[:, :20], features[:, 20:])


def test_dilated_layers_look_further() -> None:
    config = EncoderConfig((8, 12, 16), 10, 6, dilations=(1, 2, 4))
    shapes = points()
    graphs = network(config).graphs_of(shapes)
    nearest = torch.cdist(shapes, shapes).topk(24, largest=False).indices  # (3, 40, 24)
    starts = torch.arange(3)[:, None, None] * 40
    for graph, dilation in zip(graphs, (1, 2, 4), strict=True):
        expected = (nearest[:, :, : 6 * dilation : dilation] + starts).flatten(0, 1)
        assert torch.equal(graph.indices, expected)
    # 13 points leave room for a dilation of 2 only.
    assert torch.equal(*(graph.indices for graph in network(config).graphs_of(points(1, 13))[1:]))
    assert network(config)(points(1, 13)).shape == (1, 13, 10)


def test_wrong_configurations_and_too_few_points_are_refused() -> None:
    with pytest.raises(InputError, match="at least one layer"):
        EncoderConfig(widths=())
    with pytest.raises(InputError, match="positive numbers"):
        EncoderConfig(neighbors=0)
    with pytest.raises(InputError, match=r"got dilations \(1, 2\) for 4 layers"):
        EncoderConfig(dilations=(1, 2))
    with pytest.raises(InputError, match="activation commute"):
        EncoderConfig(slope=-0.1)
    with pytest.raises(InputError, match=r"6 neighbours .* 5 points"):
        network()(points(1, 5))
