"""The JSON Schema of experiment files, with which editors check a file while it is written."""

import json
from typing import Any

from reproduce.config.experiment_file import PANEL_BY_SIZE, Sweep
from results.spec.experiment_spec import Experiment


def experiment_schema() -> str:
    """Return the JSON Schema of an experiment file.

    It knows all keys and their types. It requires none, because a panel may leave out what the file gives for all
    panels; the suite itself checks that an experiment is complete.
    """
    schema = _optional(Experiment.model_json_schema(mode="validation"))
    sweep = _optional(Sweep.model_json_schema(mode="validation"))
    definitions = {**schema.pop("$defs"), **sweep.pop("$defs", {}), "Sweep": sweep}
    properties = schema["properties"]
    properties["sweeps"] = {"type": "array", "items": {"$ref": "#/$defs/Sweep"}}
    panel = {key: schema[key] for key in ("properties", "type", "additionalProperties")}
    whole = {
        "$defs": {**definitions, "Panel": {**panel, "title": "Panel"}},
        "title": "Experiment file",
        "description": schema["description"],
        "type": "object",
        "properties": {
            **properties,
            "panels": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Panel"}},
            PANEL_BY_SIZE: {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            },
        },
        "additionalProperties": False,
    }
    return json.dumps(whole, indent=1) + "\n"


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = {name: _optional(part) for name, part in schema.get("$defs", {}).items()}
    kept = {key: value for key, value in schema.items() if key != "required"}
    return {**kept, "$defs": definitions} if definitions else kept
