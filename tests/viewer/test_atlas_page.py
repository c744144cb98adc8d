"""The page of an atlas: data as text, and a policy for its own script alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from ltenet.collections.atlas_files import analyse
from ltenet.viewer.atlas_page import atlas_html
from tests.collections.test_atlas import known_atlas
from tools.chromium import Browser


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


@pytest.mark.slow
def test_sliders_move_the_mean_and_specimens_can_be_chosen(
    browser: Browser, tmp_path: Path
) -> None:
    atlas, _ = known_atlas()
    statistics = analyse(atlas)._replace(outliers=("s7",))
    path = tmp_path / "report.html"
    path.write_text(atlas_html(atlas, statistics, title="Skulls"), encoding="utf-8")
    page = browser.open(path.as_uri())
    page.wait_for("document.body.dataset.ready === 'true'")
    assert page.run("document.querySelectorAll('#controls input').length") == len(
        statistics.model.modes
    )
    assert page.run("document.querySelectorAll('figure').length") == 12
    assert page.run("document.querySelector('figure.outlier').textContent") == "s7 (outlier)"
    assert "not registered: bad" in page.run("document.getElementById('facts').textContent")
    picture = "document.getElementById('view').toDataURL()"
    first = page.run(picture)
    page.run(
        "(() => { const i = document.querySelector('#controls input'); i.value = 2;"
        " i.dispatchEvent(new Event('input')); })()"
    )
    moved = page.run(picture)
    assert moved != first
    page.run("document.querySelector('#controls button').click()")
    assert page.run(picture) == first
    page.click_on("figure")
    score = statistics.model.scores[0, 0] / np.sqrt(statistics.model.variances[0])
    shown = float(page.run("document.querySelector('#controls input').value"))
    assert abs(shown - score) < 0.05
    assert page.run(picture) != first
    assert page.errors == []
    assert page.requests == [path.as_uri()]
    page.close()
