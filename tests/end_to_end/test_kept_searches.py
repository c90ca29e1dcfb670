"""The kept searches on glyphs: whoever imports them trains the own method, and has it beside the others."""

import json
import re

import pytest

from results.store.experiment_results import MeasuredExperiment


@pytest.mark.late
def test_nothing_but_the_own_method_is_trained(say):
    imported = say("store", "import", "fourteen").done()
    say("new", "method", "my_loss", "--kind", "pairs")
    kept = MeasuredExperiment.kept("reality_check_glyphs")
    # ArcFace has another version since; its trainings are not those that a run would make.
    titles = {method: title for method, title in kept.plan.titles.items() if method != "arcface"}
    methods = ",".join(titles)
    yours = f"python -m reproduce run reality_check/glyphs --methods {methods},my_loss.yaml --compare my_loss"
    assert f"train yours only: {yours}\n" in imported.out
    planned = say("plan", "reality_check/glyphs", "--methods", f"{methods},my_loss.yaml", "--compare", "my_loss")
    counts = re.findall(r"^│ (.+?) +│ +\d+ │ +\d+ │ +(\d+) │", planned.out, flags=re.MULTILINE)
    # Whoever has other versions of Pillow or of the typefaces gets other pictures, and one line that says so.
    assert "the data differ" not in planned.out + planned.err
    assert [title for title, to_do in counts if to_do == "0"] == list(titles.values())
    assert [title for title, to_do in counts if to_do != "0"] == ["My loss"]

    # Nothing is trained in this row, so it takes seconds; the rest is what any row goes through.
    ran = say(
        "run", "reality_check/glyphs", "--methods", f"{methods},untrained", "--compare", "untrained", "--workers", "1"
    )
    assert "Untrained trunk" in ran.out
    table = MeasuredExperiment.from_json(say("table", "reality_check/glyphs", "--format", "json").out)
    own = [record for record in table.records if record.method == "untrained"]
    others = [json.loads(record.model_dump_json()) for record in table.records if record.method != "untrained"]
    assert len(own) == 6
    assert others == [json.loads(record.model_dump_json()) for record in kept.records if record.method in titles]
