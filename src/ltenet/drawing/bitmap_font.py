"""A 5 x 7 bitmap font for captions, so that pictures need no font library.

Each printable ASCII character is five columns of eight bits, the top row in the lowest bit; only
the tails of g, j, p, q and y reach the eighth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST, _LAST = 32, 126
_COLUMNS, _ROWS = 5, 8

_GLYPHS = (
    "0000000000" "00005f0000" "0007000700" "147f147f14" "242a7f2a12" "2313086462" "3649552250"
    "0005030000" "001c224100" "0041221c00" "14083e0814" "08083e0808" "0050300000" "0808080808"
    "0060600000" "2010080402"
    "3e5149453e" "00427f4000" "4261514946" "2141454b31" "1814127f10" "2745454539" "3c4a494930"
    "0171090503" "3649494936" "064949291e"
    "0036360000" "0056360000" "0814224100" "1414141414" "0041221408" "0201510906" "324979413e"
    "7e1111117e" "7f49494936" "3e41414122" "7f4141221c" "7f49494941" "7f09090901" "3e4149497a"
    "7f0808087f" "00417f4100" "2040413f01" "7f08142241" "7f40404040" "7f020c027f" "7f0408107f"
    "3e4141413e" "7f09090906" "3e4151215e" "7f09192946" "4649494931" "01017f0101" "3f4040403f"
    "1f2040201f" "3f4038403f" "6314081463" "0708700807" "6151494543"
    "007f414100" "0204081020" "0041417f00" "0402010204" "4040404040" "0001020400"
    "2054545478" "7f48444438" "3844444420" "384444487f" "3854545418" "087e090102" "18a4a4a47c"
    "7f08040478" "00447d4000" "4080847d00" "7f10284400" "00417f4000" "7c04180478" "7c08040478"
    "3844444438" "fc24242418" "18242424fc" "7c08040408" "4854545420" "043f444020" "3c4040207c"
    "1c2040201c" "3c4030403c" "4428102844" "1ca0a0a07c" "4464544c44"
    "0008364100" "00007f0000" "0041360800" "0804081008"
)  # fmt: skip


def text_mask(text: str, *, scale: int = 1) -> NDArray[np.bool_]:
    """(8 scale, 6 scale L) True for ink, of L characters; non-ASCII ones become question marks."""
    codes = [
        ord(letter) - _FIRST if _FIRST <= ord(letter) <= _LAST else ord("?") - _FIRST
        for letter in text
    ]
    columns = np.frombuffer(bytes.fromhex(_GLYPHS), np.uint8).reshape(-1, _COLUMNS)[codes]  # (L, 5)
    spaced = np.pad(columns, ((0, 0), (0, 1))).reshape(-1)  # (6 L,)
    rows = (spaced[None, :] >> np.arange(_ROWS)[:, None]) & 1  # (8, 6 L)
    return np.kron(rows, np.ones((scale, scale), np.uint8)).astype(bool)
