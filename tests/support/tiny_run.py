"""Runs of the command line on a folder of images and on glyphs, shared by the tests of what can be done with them."""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image

from reproduce.commands import cli
from tests.support.command_line import TINY, Answer, reproduce

FOLDERS = (
    TINY.replace("name: glyphs", "name: folder")
    .replace("iterations_per_epoch: 5", "iterations_per_epoch: 2")
    .replace("crop: 32", "crop: 16")
)

GLYPHS = (
    TINY.replace("A tiny experiment", "A tiny <script>alert(1)</script> experiment")
    .replace("[untrained, contrastive]", "[contrastive, proxy_anchor]")
    .replace("reproductions: 1", "reproductions: 2")
    + "test_curves: true\n"
)


class GlyphRun(NamedTuple):
    """A folder with `tiny.yaml` and its finished run in `runs`, and what the run said."""

    folder: Path
    ran: Answer


def glyph_run(folder: Path) -> GlyphRun:
    """Run a tiny experiment on glyphs with two workers, beside files with the names of the suite's packages."""
    for name in ("losses", "protocols", "reports", "results"):
        (folder / f"{name}.py").write_text("raise SystemExit")
    (folder / "tiny.yaml").write_text(GLYPHS)
    ran = reproduce(folder, "run", "tiny.yaml", "--workers", "2", page=True).done()
    return GlyphRun(folder, ran)


def striped_images(folder: Path, seed: int = 0) -> None:
    """Sixteen classes of four small pictures each, by class folders: noisy stripes."""
    noise = np.random.default_rng(seed)
    for label in range(16):
        (folder / f"class_{label:02}").mkdir(parents=True)
        stripes = np.arange(18)[None, :, None] * (label + 1) % 18 * 11
        for number in range(4):
            pixels = stripes + noise.integers(-250, 250, (18, 18, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"class_{label:02}" / f"{number}.png")


def finished_run(folder: Path) -> Path:
    """Fill a folder with `images`, `tiny.yaml` and its finished run in `runs`, tracked by TensorBoard."""
    striped_images(folder / "images")
    (folder / "tiny.yaml").write_text(FOLDERS)
    asked = ("--data", "images", "--workers", "1", "--device", "cpu", "--track", "tensorboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("reproduce.outputs.page.page_or_reason", lambda *_: ["page: not drawn"])
        patch.setattr(sys, "argv", ["reproduce", "run", "tiny.yaml", *asked])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    torch.set_num_threads(1)
    assert not ended.value.code
    return folder


def write_own_loss(folder: Path) -> None:
    """Write a card with a loss, a metric and `experiment.yaml` into `files`, where nobody looks for modules."""
    (folder / "files").mkdir()
    assert reproduce(folder, "new", "method", "users_own", "--kind", "proxy", "--to", "files").code == 0
    metric = "def spread(embeddings, labels):\n    return embeddings.std(dim=0).mean()\n"
    (folder / "files" / "users_metrics.py").write_text(metric)
    methods = "methods: [users_own.yaml]\nmetrics: [./users_metrics.py:spread]"
    text = TINY.replace("methods: [untrained, contrastive]", methods)
    (folder / "files" / "experiment.yaml").write_text(text)
