"""The page itself: short, alone, and its own example works."""

from __future__ import annotations

import ast
import inspect
import textwrap

import torch

from ltenet.method import plain


def bent(points: torch.Tensor) -> torch.Tensor:
    """Bend (B, N, 3) points about the z axis."""
    x, y, z = points.unbind(dim=-1)
    return torch.stack([x + 0.3 * y**2, y, z], dim=-1)


def test_the_method_is_one_page_of_torch() -> None:
    source = inspect.getsource(plain)
    assert len(source.splitlines()) <= 200
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    own = {"__future__", "math", "collections.abc", "torch", "torch.nn.functional"}
    assert imported <= own


def test_its_example_trains_and_matches() -> None:
    example = textwrap.dedent(str(plain.__doc__).split("::\n\n")[1].split("\n\n")[0])
    torch.manual_seed(0)
    shapes = torch.randn(2, 120, 3)
    shapes = 0.5 * shapes / shapes.norm(dim=-1, keepdim=True)

    def small_network() -> plain.DGCNN:
        return plain.DGCNN((8, 16), 16, 8)

    names = {**vars(plain), "DGCNN": small_network, "pairs": [(shapes, bent(shapes))] * 4}
    exec(compile(example, "example", "exec"), names)
    assert names["partners"].shape == (2, 120)
    assert torch.isfinite(names["loss"])
    assert all(p.grad is not None for p in names["network"].parameters())


def test_equal_features_match_equal_points() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, 30, 6, generator=generator, dtype=torch.float64)
    order = torch.randperm(30, generator=generator)
    assert torch.equal(plain.match(features[:, order], features), order.expand(2, -1))


def test_a_shape_is_not_rebuilt_from_the_point_itself() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(1, 12, 3, generator=generator, dtype=torch.float64)
    moved = points.clone()
    moved[0, 3] += 100
    features = torch.randn(1, 12, 5, generator=generator, dtype=torch.float64)
    before, after = (plain.self_reconstruction(features, p, k=4) for p in (points, moved))
    torch.testing.assert_close(before[0, 3], after[0, 3])
    assert not torch.allclose(before, after)
