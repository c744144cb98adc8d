"""The page of an atlas: data as text, and a policy for its own script alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np

from ltenet.collections.atlas_files import analyse
from ltenet.viewer.atlas_page import atlas_html
from tests.collections.test_atlas import known_atlas


def test_the_page_holds_the_model_and_no_foreign_markup() -> None:
    atlas, _ = known_atlas()
    bad = atlas.registered[0]._replace(name="</script><b>x")
    atlas = atlas._replace(registered=(bad, *atlas.registered[1:]))
    statistics = analyse(atlas)
    page = atlas_html(atlas, statistics, title="<i>skulls</i>")
    assert "<b>x" not in page
    assert "<i>" not in page
    found = re.search(r'id="description">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    mean = np.frombuffer(base64.b64decode(data["mean"]), "<f4").reshape(-1, 3)
    np.testing.assert_allclose(mean, statistics.model.mean, atol=1e-5)
    assert data["faces"] == [[0, 1, 2], [3, 4, 5]]
    assert data["specimens"][0]["name"] == "</script><b>x"
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "connect-src 'none'" in page
