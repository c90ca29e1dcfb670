"""The commands on a page that run its experiment again."""

from reproduce.config.strict_yaml import read_yaml
from reproduce.outputs.page import rerun_commands
from results.spec.experiment_spec import Experiment
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment
from tests.support.sample_page import measured as sample
from tests.support.sample_records import some_plan, some_run


def again(name, settings, *records):
    plan = some_plan(settings=settings)
    return [command.text for command in rerun_commands(name, MeasuredExperiment(plan, records))]


def test_the_commands_of_an_unchanged_suite_file_name_it():
    clean = some_run()
    commands = again("quickstart", load_experiment("quickstart", {}).without_folder(), clean)
    assert commands[0] == f"git checkout {clean.provenance.commit}"
    assert commands[1] == "python -m reproduce run quickstart"
    assert commands[-1] == "python -m reproduce report quickstart"


def test_an_experiment_without_a_suite_file_is_written_out():
    settings = {**sample("quickstart").plan.experiment.without_folder(), "title": "Mine: $(x)"}
    unclean = some_run().provenance.model_copy(update={"tree_dirty": True})
    commands = again("my own", settings, some_run(provenance=unclean))
    assert read_yaml(commands[0])["title"] == "Mine: $(x)"
    assert commands[1] == "python -m reproduce run 'my own.yaml'"


def test_another_setting_than_the_suite_files_is_written_out():
    settings = load_experiment("quickstart", {}).without_folder()
    for changed in ({"seed": 7}, {"with": {"contrastive": {"training.batch_size": 8}}}):
        text, run, *_ = again("quickstart", {**settings, **changed})
        assert Experiment.model_validate(read_yaml(text)) == Experiment.model_validate({**settings, **changed})
        assert run == "python -m reproduce run quickstart.yaml"


def test_a_dataset_from_a_folder_has_the_data_option():
    settings = load_experiment("mlrc_cub200", {}).model_dump(mode="json")
    assert again("mlrc_cub200", settings)[0] == "python -m reproduce run mlrc_cub200 --data FOLDER"
