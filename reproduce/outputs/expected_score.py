"""What to expect of an exported model: the scores of its method's models, and what is better without any training."""

from collections.abc import Iterator
from dataclasses import replace

from reproduce.outputs.find_runs import StoredRun
from results.answer.answer_question import answer_frame, answer_on
from results.answer.question import question_of
from results.answer.values import Answer
from results.records.frame import EmbeddingKind
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from results.wording import counted

_MODELS = {"separated": "single models", "concatenated": "joined models"}


def expected_score(store: Store, run: StoredRun, kind: EmbeddingKind) -> str:
    """Say which scores the models of a run's method have on the test classes, and warn if they lose to no training.

    Args:
        kind: `separated` for a single model, `concatenated` for the joined ones of a run.
    """
    measured, method = MeasuredExperiment.from_store(store, run.fingerprint), run.record.method
    question = question_of(measured)
    compare = method if method in question.compared else "all"
    asked = replace(question.on(question.score, kind), compare=compare, alpha=question.alpha)
    return " ".join(_said(answer_frame(measured.frame, asked), method, kind))


def _said(found: Answer, method: str, kind: EmbeddingKind) -> Iterator[str]:
    metrics, values = dict.fromkeys((found.question.score, *HEADLINE_METRICS)), found.values[method]
    scores = []
    for metric in metrics:
        if one := answer_on(found, metric, kind).intervals.get(method):
            width = "" if one.half_width is None else f" ± {100 * one.half_width:.1f}"
            scores.append(f"{HEADLINE_METRICS.get(metric, metric)} {100 * one.mean:.1f}{width} %")
    unit = counted(len(values.units), "search" if values.planned.searches else "run")
    yield (
        f"Expect of it on new classes: {', '.join(scores)}. That is the mean of {unit} of this method, {_MODELS[kind]} "
        "trained on a part of the classes and tested on others."
    )
    for pair in found.pairs:
        if pair.worse == method and not (better := found.question.methods[pair.better or ""]).trained:
            size = f"{100 * abs(pair.difference):.1f} ± {100 * (pair.half_width or 0.0):.1f}"
            yield f"Warning: {better.title}, which trains nothing, is better by {size} ({found.question.score_name})."
