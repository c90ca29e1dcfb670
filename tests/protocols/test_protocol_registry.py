"""The registry of protocols agrees with what an experiment may ask for."""

from typing import get_args

from protocols.datasets.splits import SPLITS
from protocols.protocol_registry import PROTOCOLS
from results.spec.data_choice import DrawnSplit
from results.spec.experiment_spec import Experiment


def test_an_experiment_can_name_every_protocol_and_no_other():
    assert get_args(Experiment.model_fields["protocol"].annotation) == tuple(PROTOCOLS)


def test_an_experiment_can_name_every_split_or_leave_it_to_its_protocol():
    named, drawn, absent = get_args(Experiment.model_fields["split"].annotation)
    assert get_args(named) == SPLITS
    assert drawn is DrawnSplit
    assert absent is type(None)


def test_every_protocol_has_a_split_that_exists():
    assert {name: protocol.split for name, protocol in PROTOCOLS.items()} == {
        "mlrc": "mlrc",
        "standard": "conventional",
    }
    assert {protocol.split for protocol in PROTOCOLS.values()} <= set(SPLITS)
