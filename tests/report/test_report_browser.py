"""The report in a real browser: everything is drawn, nothing is fetched, tables sort."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import grid, make_run, manifest

from omnijudge.report.html import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
KEYS = [
    ("ia_qtf1", "all"), ("ia_qtf1", "realtime"), ("precision", "all"), ("recall", "all"),
    ("fp_low", "all"), ("fp_spill", "all"), ("response_delay_p50", "all"),
    ("response_delay_p90", "all"),
]  # fmt: skip
MANY = 60

PROBE = """
<script>
addEventListener("load", () => {
  const shape = (e) => { const r = e.getBoundingClientRect(); return [r.width, r.height, r.left]; };
  const table = document.querySelector("#ranking-table");
  const names = () => [...table.tBodies[0].rows].map((r) => r.querySelector("th").textContent);
  const found = {
    fetched: performance.getEntriesByType("resource").map((e) => e.name),
    scheme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.body).backgroundColor,
    plots: [...document.querySelectorAll("svg.plot")].map(shape),
    texts: [...document.querySelectorAll("svg.plot text")].map((e) => [
      e.textContent,
      e.getBoundingClientRect().left >= e.ownerSVGElement.getBoundingClientRect().left,
      getComputedStyle(e).fill,
    ]),
    marks: document.querySelectorAll("svg.plot use title").length,
    rows: [...table.tBodies[0].rows].map(shape),
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    before: names(),
  };
  const heads = [...table.tHead.rows[0].cells];
  const click = (label) =>
    heads.find((h) => h.textContent === label).querySelector("button").click();
  click("Recall");
  found.recall = names();
  click("Recall");
  found.recall_again = names();
  click("System");
  found.system = names();
  const filter = table.parentElement.previousElementSibling;
  filter.value = "SYSTEM-07";
  filter.dispatchEvent(new Event("input"));
  found.filtered = [...table.tBodies[0].rows].filter((r) => !r.hidden).length;
  document.body.dataset.found = JSON.stringify(found);
});
</script>
"""


def browse(folder: Path, *arguments: str, size: str = "1200,900") -> str:
    """Runs the browser without a window; returns what it prints."""
    if BROWSER is None:
        reason = "no Chromium is installed; apt-get install chromium brings one"
        if "browser" in os.environ.get("OMNIJUDGE_REQUIRE", "").split(","):
            pytest.fail(f"OMNIJUDGE_REQUIRE names browser, but {reason}")
        pytest.skip(reason)
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
            f"--user-data-dir={folder / 'profile'}", f"--window-size={size}", *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = {
        f"system-{i:02d}": [i / 100, i / 90, 0.5, ((i * 7) % MANY) / 100, i, 1.0, 0.5, 1.5]
        for i in range(MANY)
    }
    values["全双工语音助手"] = [0.99, 0.5, 0.5, None, 1.0, 0.0, 0.5, 1.5]
    run = make_run(tmp_path_factory.mktemp("browser") / "run", grid(KEYS, values), manifest())
    return write_report(run)


def probed(report: Path, tmp_path: Path, *arguments: str, **options: str) -> dict[str, Any]:
    """What a script finds on the page once it is drawn."""
    page = tmp_path / "probed.html"
    page.write_text(report.read_text("utf-8").replace("</body>", PROBE + "</body>"), "utf-8")
    dom = browse(
        tmp_path, "--dump-dom", "--virtual-time-budget=5000", *arguments, page.as_uri(), **options
    )
    told = re.search(r'data-found="([^"]*)"', dom)
    assert told is not None, dom[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(told[1]))
    return found


def test_drawn_sorted_and_nothing_fetched(report: Path, tmp_path: Path) -> None:
    found = probed(report, tmp_path)
    assert [x for x in found["fetched"] if not x.startswith("data:")] == []
    assert len(found["plots"]) == 4
    assert all(width > 300 and height > 60 for width, height, _ in found["plots"])
    assert all(inside for _, inside, _ in found["texts"])
    assert any("全双工语音助手" in text for text, _, _ in found["texts"])
    assert found["marks"] == 4 * (MANY + 1) - 1  # one system has no recall
    assert len(found["rows"]) == MANY + 1
    assert all(width > 300 and height > 10 for width, height, _ in found["rows"])
    assert not found["wide"]

    ranked = ["全双工语音助手", *(f"system-{i:02d}" for i in reversed(range(MANY)))]
    assert found["before"] == ranked
    by_recall = sorted(range(MANY), key=lambda i: (i * 7) % MANY)
    highest_first = [f"system-{i:02d}" for i in reversed(by_recall)]
    assert found["recall"] == [*highest_first, "全双工语音助手"]
    assert found["recall_again"] == [*reversed(highest_first), "全双工语音助手"]
    assert found["system"][:2] == ["system-00", "system-01"]
    assert found["filtered"] == 1


def test_light_and_dark(report: Path, tmp_path: Path) -> None:
    colours = {}
    for name, number in (("light", 1), ("dark", 0)):
        (tmp_path / name).mkdir()
        found = probed(report, tmp_path / name, f"--blink-settings=preferredColorScheme={number}")
        assert found["scheme"] == name
        colours[name] = (found["ink"], found["paper"])
        # The plots take the page's colours.
        assert {fill for _, _, fill in found["texts"]} >= {found["ink"]}
    (light_ink, light_paper), (dark_ink, dark_paper) = colours["light"], colours["dark"]
    assert brightness(light_ink) < 90 < 180 < brightness(light_paper)
    assert brightness(dark_paper) < 90 < 180 < brightness(dark_ink)


def test_on_a_telephone_nothing_runs_out_of_the_page(report: Path, tmp_path: Path) -> None:
    assert not probed(report, tmp_path, size="500,900")["wide"]


def test_without_scripts_the_page_looks_the_same(report: Path, tmp_path: Path) -> None:
    from matplotlib.image import imread

    text = report.read_text("utf-8")
    pages = {
        "with": text,
        "without": text.replace("script-src 'unsafe-inline'", "script-src 'none'"),
    }
    shares = []
    for name, content in pages.items():
        page, picture = tmp_path / f"{name}.html", tmp_path / f"{name}.png"
        page.write_text(content, "utf-8")
        browse(tmp_path, f"--screenshot={picture}", page.as_uri(), size="1200,2500")
        image = imread(picture)
        shares.append(float((image[..., :3].mean(axis=-1) < 0.9).mean()))
    assert min(shares) > 0.01
    assert shares[1] == pytest.approx(shares[0], rel=0.1)


def brightness(colour: str) -> float:
    """Mean of the three channels of ``rgb(...)``."""
    numbers = [float(x) for x in re.findall(r"[\d.]+", colour)[:3]]
    return sum(numbers) / 3
