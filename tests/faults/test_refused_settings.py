"""Stores that would keep nothing, and misspelt keys, are refused in one line before anything runs."""

import pytest

from protocols.datasets.dataset import DataError
from protocols.datasets.folder import open_folder
from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError
from tests.support.command_line import TINY
from tests.support.image_folders import data_request, make_folder

RANGE = "{loss.pos_margin: {low: 0, high: 1}}"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("settings: {contrastve: {loss.pos_margin: 0.1}}", "settings: there is no row 'contrastve'; the rows are untr"),
        (f"search: {{trials: 2, ranges: {{contrastve: {RANGE}}}}}", "search.ranges: there is no row 'contrastve'; the"),
    ],
)
def test_a_misspelt_row_is_refused_with_the_known_rows(tmp_path, changed, said):
    path = tmp_path / "one.yaml"
    path.write_text(TINY.replace("search: {trials: 2}", changed if "search" in changed else f"search: {{}}\n{changed}"))
    with pytest.raises(InputError, match=said):
        load_experiments(str(path), {})


def test_common_settings_can_be_for_the_rows_of_another_panel(tmp_path):
    path = tmp_path / "one.yaml"
    panels = "panels:\n  a: {methods: [untrained]}\n  b: {variants: [{of: contrastive, key: mine, title: M, set: {}}]}"
    path.write_text(f"{TINY}settings: {{mine: {{loss.pos_margin: 0.1}}}}\n{panels}")
    assert set(load_experiments(str(path), {})) == {"one/a", "one/b"}
    path.write_text(f"{TINY}settings: {{mien: {{loss.pos_margin: 0.1}}}}\n{panels}")
    with pytest.raises(InputError, match=r"panels\.a: settings: there is no row 'mien'"):
        load_experiments(str(path), {})


@pytest.mark.parametrize("target", ["loss.pos_margn", "los.pos_margin", "loss"])
@pytest.mark.parametrize("key", ["settings", "ranges"])
def test_a_misspelt_hyperparameter_is_refused(tmp_path, key, target):
    path = tmp_path / "one.yaml"
    value = {"settings": f"search: {{trials: 2}}\nsettings: {{contrastive: {{{target}: 0.1}}}}"}
    value["ranges"] = f"search: {{trials: 2, ranges: {{contrastive: {{{target}: {{low: 0, high: 1}}}}}}}}"
    path.write_text(TINY.replace("search: {trials: 2}", value[key]))
    (experiment,) = load_experiments(str(path), {}).values()
    with pytest.raises(InputError, match=f"method 'contrastive': .*'{target.removeprefix('loss.')}|'{target}'"):
        open_method(experiment, load_card("contrastive"))


def test_a_file_name_that_is_not_utf_8_is_refused(tmp_path):
    root = make_folder(tmp_path / "images")
    (root / "class_1" / "0.png").rename(root / "class_1" / "caf\udce9.png")
    with pytest.raises(DataError, match=r"the name 'class_1/caf\\udce9.png' is not UTF-8; rename") as raised:
        open_folder(data_request(root, tmp_path / "cache"))
    str(raised.value).encode()


@pytest.mark.parametrize(
    ("key", "most"), [("reproductions", 1000), ("search.trials", 10_000), ("search.searches", 100)]
)
def test_numbers_that_no_machine_could_work_off_are_refused(key, most):
    with pytest.raises(InputError, match=f"'{key}': input should be less than or equal to {most}, found"):
        load_experiments("quickstart", {key: 10**9})
