"""The commands on a page that run its experiment again."""

import shlex

import yaml

from reproduce.commands.options import Choices
from reproduce.outputs.rerun_commands import rerun_commands
from results.spec.experiment_spec import Experiment
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment
from tests.support.sample_page import measured as sample
from tests.support.sample_records import some_run, some_summary


def again(name, settings, *records):
    summary = some_summary(settings=settings)
    return [command.text for command in rerun_commands(name, MeasuredExperiment(summary, records))]


def test_commands_have_options_for_differences_from_the_file():
    kept = sample("quickstart").summary.experiment.without_folder()
    settings = {**kept, "seed": 7, "methods": ["untrained", "proxy_anchor"]}
    clean = some_run()
    commands = again("quickstart", settings, clean)
    assert commands[0] == f"git checkout {clean.provenance.commit}"
    assert commands[1] == "python -m reproduce run quickstart --methods untrained,proxy_anchor --seed 7"
    assert commands[-1] == "python -m reproduce report quickstart"


def test_an_experiment_without_a_suite_file_is_written_out():
    settings = {**sample("quickstart").summary.experiment.without_folder(), "title": "Mine: $(x)"}
    unclean = some_run().provenance.model_copy(update={"tree_dirty": True})
    commands = again("my own", settings, some_run(provenance=unclean))
    assert yaml.safe_load(commands[0])["title"] == "Mine: $(x)"
    assert commands[1] == "python -m reproduce run 'my own.yaml'"


def test_settings_without_an_option_of_their_own_are_set_by_their_keys():
    settings = load_experiment("quickstart", {}).without_folder()
    optimizer = {**settings["training"]["optimizer"], "lr": 0.5}
    training = {**settings["training"], "patience": 8, "optimizer": optimizer}
    changed = {**settings, "training": training, "metrics": ["nmi"], "primary": {"compare": "best"}}
    line = again("quickstart", changed)[0]
    assert line.startswith("python -m reproduce run quickstart ")
    assert " --compare best " in line
    given = dict(option.partition("=")[::2] for option in shlex.split(line) if "=" in option)
    assert given == {"metrics": '["nmi"]', "training.optimizer.lr": "0.5", "training.patience": "8"}
    options = Choices(compare="best", settings=[f"{key}={value}" for key, value in given.items()])
    assert load_experiment("quickstart", options.overrides()) == Experiment.model_validate(changed)


def test_a_different_dataset_or_row_with_the_name_of_a_suite_file_is_written_out():
    settings = load_experiment("quickstart", {}).without_folder()
    assert again("quickstart", settings)[0] == "python -m reproduce run quickstart"
    commands = again("quickstart", {**settings, "with": {"triplet": {"training.batch_size": 8}}})
    assert yaml.safe_load(commands[0])["with"] == {"triplet": {"training.batch_size": 8}}
    assert commands[1] == "python -m reproduce run quickstart.yaml"


def test_a_dataset_from_a_folder_has_the_data_option():
    plain = load_experiment("mlrc_cub200", {}).model_dump(mode="json")
    settings = {**plain, "dataset": {"name": "cub200", "subset": True}, "folds": 2}
    (line,) = [text for text in again("mlrc_cub200", settings) if " run " in text]
    assert line.endswith("run mlrc_cub200 --data FOLDER --set dataset.subset=true --folds 2")
    own = load_experiment("folder", {}).model_dump(mode="json")
    own["dataset"]["min_images"] = 5
    (line,) = [text for text in again("folder", own) if " run " in text]
    assert line == "python -m reproduce run folder --data FOLDER --set dataset.min_images=5"
