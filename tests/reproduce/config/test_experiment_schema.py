"""The JSON Schema of experiment files."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from reproduce.config.experiment_schema import experiment_schema
from reproduce.config.strict_yaml import EXPERIMENTS

SCHEMA = json.loads(experiment_schema())


def unknown_keys(value: object, schema: dict[str, Any], where: str = "") -> Iterator[str]:
    """Keys of a file that the schema does not know."""
    parts = [schema, *schema.get("anyOf", [])]
    parts = [SCHEMA["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in parts]
    if isinstance(value, list):
        items = next((part["items"] for part in parts if isinstance(part.get("items"), dict)), {})
        for item in value:
            yield from unknown_keys(item, items, where)
    elif isinstance(value, dict):
        known = {key: inner for part in parts for key, inner in part.get("properties", {}).items()}
        others = [part["additionalProperties"] for part in parts if part.get("additionalProperties")]
        for key, inner in value.items():
            if key in known:
                yield from unknown_keys(inner, known[key], f"{where}.{key}")
            elif not others:
                yield f"{where}.{key}"
            elif isinstance(others[0], dict):
                yield from unknown_keys(inner, others[0], f"{where}.{key}")


def test_the_committed_schema_equals_the_schema_of_the_experiments() -> None:
    assert (EXPERIMENTS / "experiment.schema.json").read_text() == experiment_schema()


def test_the_schema_knows_every_key_of_the_experiment_files() -> None:
    files = sorted(EXPERIMENTS.glob("*.yaml"))
    unknown = {path.stem: list(unknown_keys(yaml.safe_load(path.read_text()), SCHEMA)) for path in files}
    assert files
    assert not any(unknown.values()), unknown


def test_files_to_copy_name_the_schema_for_editors() -> None:
    for name in ("quickstart", "folder", "folder_small"):
        text = (EXPERIMENTS / f"{name}.yaml").read_text()
        assert text.startswith("# yaml-language-server: $schema=experiment.schema.json\n"), name


def test_the_schema_refuses_unknown_keys() -> None:
    wrong = {"tilte": "T", "training": {"epochs": 3}, "panels": {"a": {"images": {"corp": 3}}}}
    assert list(unknown_keys(wrong, SCHEMA)) == [".tilte", ".training.epochs", ".panels.a.images.corp"]
