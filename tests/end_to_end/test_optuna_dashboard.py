"""Optuna Dashboard can open the store: `optuna-dashboard sqlite:///runs/store.sqlite`."""

import json
from collections.abc import Callable
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from reproduce.storage import open_studies, storage_paths
from results.store.store import Store

dashboard = pytest.importorskip("optuna_dashboard")


def get(app: Callable[..., Any], path: str) -> Any:
    """Return the JSON that the dashboard's page requests."""
    environ: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    body = b"".join(app(environ, lambda status, headers, error=None: statuses.append(status)))
    assert statuses == ["200 OK"]
    return json.loads(body)


def test_the_dashboard_lists_our_studies_with_trials_and_values(tiny_run):
    where = storage_paths(str(tiny_run / "runs" / "store.sqlite"), None, None, None)
    app = dashboard.wsgi(open_studies(where))
    (summary,) = get(app, "/api/studies")["study_summaries"]
    assert summary["study_name"].startswith("folder/contrastive ")
    assert summary["directions"] == ["maximize"]
    trials = get(app, f"/api/studies/{summary['study_id']}")["trials"]
    assert [trial["number"] for trial in trials] == [0, 1]
    assert {trial["state"] for trial in trials} == {"Complete"}
    folds = Store(where.store, where.artifacts).folds().set_index("fingerprint")["best_map_at_r"]
    for trial in trials:
        told = {entry["key"]: json.loads(entry["value"]) for entry in trial["user_attrs"]}
        assert trial["values"] == pytest.approx([folds[told["fold_fingerprints"]].mean()], rel=1e-12)
        assert {parameter["name"] for parameter in trial["params"]} == {"loss.pos_margin", "loss.neg_margin"}
