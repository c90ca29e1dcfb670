"""A tiny search whose trainings are kept: names, losses and scores, as every processor should make them.

After a change that alters trainings, `python -m tests.support.pinned_digits` keeps those of this machine.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from results.records.provenance import processor
from results.store.store import Store
from tests.support.command_line import TINY, reproduce

FILE = Path(__file__).resolve().parents[1] / "contracts" / "pinned_digits.json"

# The first five of seven trials are Sobol points, and a Gaussian process proposes two.
SEARCH = (
    TINY.replace("[untrained, contrastive]", "[contrastive, proxy_anchor]")
    .replace("iterations_per_epoch: 5", "iterations_per_epoch: 20")
    .replace("batch_size: 16", "batch_size: 32")  # From 26 images on, torch takes distances from a product and a root.
    .replace("trials: 2", "trials: 7")
)


def trainings_of_a_search(folder: Path) -> list[dict[str, Any]]:
    """Run the search in a folder, and return its trainings in their order."""
    (folder / "digits.yaml").write_text(SEARCH)
    reproduce(folder, "run", "digits.yaml", "--workers", "2", "--device", "cpu").done()
    store = Store(folder / "runs" / "store.sqlite", folder / "runs" / "artifacts")
    searches = store.searches.of_experiment(store.latest_experiments()["digits"])
    return [
        {"of": f"{method}, trial {trial.number + 1}, fold {fold + 1}", "setting": trial.setting, "name": name}
        | {"curve": [[point.iteration, point.loss, point.map_at_r] for point in result.curve]}
        for (method, _), study in searches.items()
        for trial in study.trials
        for fold, name in enumerate(trial.trainings)
        if (result := store.fold_result(name))
    ]


if __name__ == "__main__":
    from importlib.metadata import version

    os.environ.pop("REPRODUCE_KERNELS", None)
    with tempfile.TemporaryDirectory() as folder:
        made = trainings_of_a_search(Path(folder))
    kept = {"torch": version("torch"), "processors": [processor()], "trainings": made}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
