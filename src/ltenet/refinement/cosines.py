"""Cosine similarities between the features of two shapes, computed once."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from ltenet.lazy import lazy
from ltenet.method.neighbors import BLOCK_ENTRIES, TopK
from ltenet.refinement.threads import by_blocks

#: Similarities up to which the whole matrix is kept: 128 MB. Larger ones are computed in blocks
#: when asked for.
KEPT_ENTRIES = 1 << 25
#: Features gathered at a time for single similarities: 1 MB stays in cache.
_GATHERED_FLOATS = 1 << 18
#: Rows that are compared as one group in the search for the best row.
_GROUP = 64


class Cosines:
    """Cosine similarities of (N, D) and (M, D) unit features.

    Parameters
    ----------
    rows, columns
        The features.
    """

    def __init__(self, rows: Tensor, columns: Tensor) -> None:
        self.rows, self.columns = rows, columns

    @lazy
    def matrix(self) -> Tensor | None:
        """(N, M) all similarities, or None if they are too many to keep."""
        if len(self.rows) * len(self.columns) > KEPT_ENTRIES:
            return None
        matrix = self.rows.new_empty(len(self.rows), len(self.columns))  # (N, M)
        by_blocks(
            lambda block: torch.mm(self.rows[block], self.columns.T, out=matrix[block]),
            len(self.rows),
            self._block_rows,
        )
        return matrix

    @lazy
    def best(self) -> tuple[TopK, TopK]:
        """Most similar column of each row, (N,), and most similar row of each column, (M,)."""
        _ = self.matrix  # all blocks ask for it
        found = by_blocks(self._best_of_block, len(self.rows), self._block_rows)
        there, back = zip(*found, strict=True)
        return TopK(*(torch.cat(side) for side in zip(*there, strict=True))), reduce(_better, back)

    def _best_of_block(self, block: slice) -> tuple[TopK, TopK]:
        matrix = self.matrix
        similarity = (
            self.rows[block] @ self.columns.T if matrix is None else matrix[block]
        )  # (b, M)
        back = _best_rows(similarity)  # (M,)
        return _best_columns(similarity), TopK(back.indices + block.start, back.scores)

    @property
    def _block_rows(self) -> int:
        return max(1, BLOCK_ENTRIES // len(self.columns))

    @lazy
    def relative(self) -> Tensor:
        """(N, M) similarities less the best that either point has; for small shapes."""
        matrix = self.block(None, None)  # (N, M)
        return relative(matrix, self.best[0].scores[:, None], self.best[1].scores)

    def block(self, rows: Tensor | None, columns: Tensor | None) -> Tensor:
        """(n, m) similarities of the `rows` (n,) with the `columns` (m,); None for all."""
        if rows is None and columns is None and self.matrix is not None:
            return self.matrix
        ours = self.rows if rows is None else self.rows[rows]  # (n, D)
        return ours @ (self.columns if columns is None else self.columns[columns]).T

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Similarities of listed pairs, of the shape that both index tensors broadcast to."""
        rows, columns = torch.broadcast_tensors(rows, columns)
        if self.matrix is not None:
            return self.matrix[rows, columns]
        size = max(1, _GATHERED_FLOATS // self.rows.shape[1])
        pairs = zip(rows.flatten().split(size), columns.flatten().split(size), strict=True)
        parts = [(self.rows[r] * self.columns[c]).sum(dim=1) for r, c in pairs]
        return torch.cat(parts).view(rows.shape)


def relative(cosines: Tensor, *bests: Tensor) -> Tensor:
    """Cosines less the larger of the best that either point has with any other; broadcast.

    Zero for a mutual best match, negative elsewhere: a point all of whose similarities are low is
    no worse off than others.
    """
    return cosines - torch.maximum(*bests)


def _best_columns(similarity: Tensor) -> TopK:
    """(n,) largest entry of each row of (n, m)."""
    best = similarity.max(dim=1)
    return TopK(best.indices, best.values)


def _best_rows(similarity: Tensor) -> TopK:
    """(m,) largest entry of each column of (n, m).

    An argmax down the columns of a row-major matrix is ten times slower than a maximum. So find the
    best group of rows first, then the best row in it.
    """
    groups = similarity.split(_GROUP)
    best = torch.stack([group.amax(dim=0) for group in groups]).max(dim=0)  # (m,)
    rows = best.indices[:, None] * _GROUP + torch.arange(_GROUP, device=similarity.device)  # (m, g)
    rows = rows.clamp_max(len(similarity) - 1)
    columns = torch.arange(similarity.shape[1], device=similarity.device)[:, None]  # (m, 1)
    chosen = similarity[rows, columns].argmax(dim=1, keepdim=True)  # (m, 1)
    return TopK(rows.gather(1, chosen)[:, 0], best.values)


def _better(first: TopK, second: TopK) -> TopK:
    """Keep the better of two matches, entry by entry."""
    worse = second.scores > first.scores
    return TopK(
        torch.where(worse, second.indices, first.indices),
        torch.where(worse, second.scores, first.scores),
    )
