"""The methods of all cards for trainings on a pretended device, and what is known of their waits for it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from protocols.training import train_fold as training_module
from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.method_on_dataset import open_method
from results.spec.training_spec import MethodSpec
from tests.support.pretended_device import PretendedDevice

WAITS_PER_STEP = {
    # pytorch-metric-learning's class, whose histogram is filled through masks.
    "fastap": 15,
    # The number of medoids is that of the classes in the batch.
    "clustering": 1,
    # The miner lists the pairs that it picks; the lists' lengths depend on the embeddings.
    "multi_similarity_miner": 5,
    # A step with gradients that are not finite is skipped: the host must know before the optimizer's step.
    "nir_proxy_anchor": 1,
    "nir_proxy_nca": 1,
    "nir_soft_triple": 1,
    # The pairs of a class are listed; their number, and that of the queries among the samples, depends on the labels.
    "recall_at_k": 2,
    "roadmap": 1,
    "smooth_ap": 1,
    # pytorch-metric-learning's classes as they are, which list pairs or triplets, or pick entries by masks.
    **{"angular": 2, "circle": 13, "epshn": 8, "intra_pair_variance": 4, "large_margin_softmax": 3},
    **{"lifted_structure": 2, "lifted_structure_generalized": 3, "margin_distance_weighted": 20, "nca": 4},
    **{"npair": 6, "p2sgrad": 1, "pnp": 7, "ranked_list": 16, "sphereface": 3, "subcenter_arcface": 3, "supcon": 5},
    **{"threshold_consistent_margin": 7, "triplet_semihard": 4, "tuplet_margin": 2},
}
"""The methods whose loss or miner needs waits, with their number in a step; all others have none."""

FIRST_STEP = {"large_margin_softmax": 4, "sphereface": 4}
"""Further waits in the first step where they are more than two: the library moves constants of the loss then."""

# Starts every part of the loss within the few steps of the test.
EARLY = {
    "c1_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "c2_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "memvir_proxy_anchor": {"loss.steps": 2, "loss.gap": 0},
    "proxy_isa": {"loss.memory_start_pass": 0, "loss.filter_start_pass": 0, "loss.memory_size": 20},
}


def methods_of_cards() -> dict[str, MethodSpec]:
    """The methods of all cards in the quickstart's conditions, by card."""
    (experiment,) = load_experiments("quickstart", {}).values()
    return {name: open_method(experiment, load_card(name)).at(EARLY.get(name, {})) for name in card_names()}


@contextmanager
def waits_of_steps(mode: PretendedDevice) -> Iterator[list[Counter[str]]]:
    """The waits of each step of the trainings inside, filled while they run."""
    steps: list[Counter[str]] = []
    step = training_module._Training._step

    def counted(training: training_module._Training, epoch: int) -> None:
        before = mode.waits.copy()
        step(training, epoch)
        steps.append(mode.waits - before)

    with mock.patch.object(training_module._Training, "_step", counted):
        yield steps
