"""The answer of an experiment, with all that a reader must know beside it, computed once for table, page and terminal.

A finding is a sentence with a level and a place. Who shows findings chooses among them and does not reword them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Self

from results.answer.answer_question import answer_frame
from results.answer.answers import Answer
from results.answer.caveats import caveats
from results.answer.contrasts import ContrastAnswer, contrasts_of
from results.answer.over_classes import with_class_intervals
from results.answer.question import question_of
from results.answer.values import Finding
from results.findings.origin import origin_findings
from results.findings.search import search_findings, training_findings
from results.records.records import RunRecord
from results.spec import mlrc_constants
from results.spec.data_choice import OWN_DATA, DrawnSplit
from results.spec.experiment_spec import Contrast, Experiment
from results.spec.method import LOSS_LR
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.plan import ExperimentData, Plan, Recipe
from results.spec.trunk_spec import NO_TRUNK
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, few, joined, listed, verb


@dataclass(frozen=True, kw_only=True, repr=False)
class ExperimentAnswer(Answer):
    """The answer to what an experiment asks.

    Attributes:
        measured: The experiment with its runs.
        planned: The comparisons that its file asks for, as in `Question.compare`.
    """

    measured: MeasuredExperiment
    planned: str

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know beside the numbers."""
        return _findings(self)

    def about(self, methods: Collection[str]) -> Self:
        """Return what the answer says of these methods and their pairs; the tests are those of all methods."""
        rows = {key: row for key, row in self.measured.plan.rows.items() if key in methods}
        records = tuple(run for run in self.measured.records if run.method in methods)
        measured = replace(self.measured, plan=self.measured.plan.model_copy(update={"rows": rows}), records=records)
        gains = tuple(pair for pair in self.gains if pair.a in methods)
        return replace(self, measured=measured, gains=gains, only=frozenset(methods))


def answer_of(measured: MeasuredExperiment, compare: str | None = None) -> ExperimentAnswer:
    """Answer what an experiment asks, in its primary score.

    Args:
        compare: Other comparisons than its file asks for: `all` pairs, each with the `best`, or with this method.
    """
    question = question_of(measured)
    asked = question if compare is None else replace(question, compare=compare)
    found = with_class_intervals(answer_frame(measured.frame, asked), measured.runs)
    parts = {one.name: getattr(found, one.name) for one in fields(Answer)}
    return ExperimentAnswer(**parts, measured=measured, planned=question.compare)


def _findings(found: ExperimentAnswer) -> tuple[Finding, ...]:
    measured, plan = found.measured, found.measured.plan
    if not measured.records:
        return ()
    split_file = any(result.spec.split == "mlrc_conventional" for result in measured.trainings.values())
    return (
        *_chosen_later(found.question.compare, found.planned),
        *caveats(found),
        *_part_of_the_budget(plan),
        *_below_untrained(found, plan),
        *_all_trained(found, plan),
        *reading_findings(found),
        *contrast_findings(found, contrasts_of(found, _shown_contrasts(found, plan))),
        *_looked_before(plan),
        *_printed(plan),
        *data_findings(plan.experiment, plan.data, split_file=split_file),
        *handicaps(plan, measured.runs),
        *search_findings(found, measured),
        *training_findings(measured),
        *origin_findings(measured),
    )


def _chosen_later(compare: str, planned: str) -> Iterator[Finding]:
    if compare != planned:
        text = f"These comparisons are not those of the experiment ({planned})."
        detail = "If they were chosen by looking at results, wrong claims are more likely than the tests say."
        yield Finding("warning", text, "comparison", detail)


def _looked_before(plan: Plan) -> Iterator[Finding]:
    if plan.interim_looks:
        text = f"Searches or runs were added after results were known ({listed(plan.interim_looks)})."
        detail = "Adding after a look makes wrong claims more likely than the tests say."
        yield Finding("warning", text, "comparison", detail)


def _part_of_the_budget(plan: Plan) -> Iterator[Finding]:
    if plan.experiment.protocol != "mlrc":
        return
    searches = plan.experiment.search.searches
    parts = (
        (plan.most_trials, mlrc_constants.TRIALS, "trials" if searches == 1 else "trials in each search"),
        # Runs of several searches are not the reproductions of one.
        (plan.reproductions if searches == 1 else 0, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (plan.experiment.folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    if given := [f"{count} of {full} {unit}" for count, full, unit in parts if 0 < count < full]:
        text = f"A part of the protocol's budget: {', '.join(given)}."
        yield Finding("limit", text, "comparison", "The full budget can rank the methods differently.")


def _shown_contrasts(found: Answer, plan: Plan) -> list[Contrast]:
    """The contrasts of shown methods; none while searches or runs are missing, as no pair is claimed before."""
    if found.interim:
        return []
    return [one for one in plan.experiment.contrasts if all(map(found.shows, (*one.a, *one.b)))]


def _below_untrained(found: Answer, plan: Plan) -> Iterator[Finding]:
    means = {key: interval.mean for key, interval in found.intervals.items() if found.shows(key)}
    if below := [found.titles[key] for key in means if key != "untrained" and means[key] <= means.get("untrained", -1)]:
        named, trunk = f"{listed(below)} {verb(len(below), 'have')}", plan.experiment.conditions.trunk
        baseline = "the features as given" if trunk.name == NO_TRUNK else "the untrained trunk"
        yield Finding("warning", f"{named} no higher mean than {baseline}.", "comparison")


def _all_trained(found: Answer, plan: Plan) -> Iterator[Finding]:
    """Say that nothing shows whether training helps, where the network or the features come trained."""
    compared = [found.question.methods[key] for key in found.question.compared if found.shows(key)]
    trained = plan.experiment.conditions.trunk.weights != "random"
    if trained and plan.experiment.protocol == "mlrc" and compared and all(one.trained for one in compared):
        detail = "Training can be worse than none: the method `untrained` is the network as it is, and trains nothing."
        yield Finding("limit", "No method without training is compared.", "comparison", detail)


def _printed(plan: Plan) -> Iterator[Finding]:
    rows = []
    for row in plan.rows.values():
        values = ", ".join(f"{HEADLINE_METRICS[metric]} {value:g}" for metric, value in row.printed.items())
        rows += [f"{row.title} {values}"] if values else []
    if rows:
        text = f"Printed by the methods' sources: {'; '.join(rows)}."
        yield Finding("note", text, "comparison", "Under conditions of their own, so nothing is tested against them.")


def data_findings(experiment: Experiment, data: ExperimentData | None, *, split_file: bool) -> Iterator[Finding]:
    """Say what is not usual about the data; `split_file` if the user's file has the test classes."""
    name = experiment.dataset.name
    if experiment.dataset.subset:
        part = name if data is None else f"{counted(data.classes, 'class')} of {name}"
        yield Finding("limit", f"A part of the dataset: {part}.", "data", "Scores on the whole of it differ.")
    if data is not None and data.left_out:
        yield Finding("note", f"Left out of the data: {'; '.join(data.left_out)}.", "data")
    if data is not None and data.equal_files:
        yield Finding("note", f"The data have {data.equal_files}.", "data")
    if isinstance(experiment.split, DrawnSplit):
        text = f"The test classes are a random half of the classes (seed {experiment.split.seed})."
        yield Finding("note", text, "data", "In MLRC they are the second half in the order of the classes.")
    elif experiment.split is None and name in OWN_DATA and split_file:
        text = "Training and test classes are those of the user's split file, not the halves of MLRC."
        yield Finding("note", text, "data")


_Rows = Mapping[str, Recipe]
"""Recipes of the methods that are compared, by title."""


def handicaps(plan: Plan, runs: Mapping[str, Sequence[RunRecord]] | None = None) -> Iterator[Finding]:
    """Say which of the compared methods are trained or searched worse than the others by their cards alone.

    Args:
        runs: The runs by method. Of methods without a recipe, as in experiments that an earlier release recorded, they
            tell the images of a class in a batch; nothing else is said of these.
    """
    known = recipes(plan, runs or {})
    rows = {title: known[key] for key, title in plan.compared.items() if key in known}
    if any(recipe.searched for recipe in rows.values()):
        yield from _rates(rows)
        yield from _ranges_of_rates(plan)
        yield from _arguments(rows)
    yield from _batches(rows)
    if stuck := [title for title, recipe in rows.items() if recipe.falls is False]:
        text = f"Losses that do not fall while random embeddings are trained with them: {joined(stuck)}."
        detail = "What their cards fix, such as a rate or a scale, may not suit them."
        yield Finding("warning", text, "training", detail)


def recipes(plan: Plan, runs: Mapping[str, Sequence[RunRecord]]) -> dict[str, Recipe]:
    """Return the recipes of the plan; of trained methods without one, the images of a class in the runs' batches."""
    methods = {key: own[0].specs[0].method for key, own in runs.items()}
    drawn = {key: Recipe(samples_per_class=one.batch.samples_per_class) for key, one in methods.items() if one.loss}
    return drawn | {key: row.recipe for key, row in plan.rows.items() if row.recipe}


def _rates(rows: _Rows) -> Iterator[Finding]:
    searched = sum(LOSS_LR in recipe.searched for recipe in rows.values())
    fixed = [
        f"{title} {'that of the network' if recipe.loss_lr is None else f'{recipe.loss_lr:g}'}"
        for title, recipe in rows.items()
        if recipe.parameters and LOSS_LR not in recipe.searched
    ]
    if fixed and searched:
        text = f"Learning rates of a loss's own parameters that are not searched: {joined(fixed)}."
        detail = f"Those of {counted(searched, 'other method')} {verb(searched, 'are')} searched ({LOSS_LR})."
        yield Finding("warning", text, "search", detail)


def _ranges_of_rates(plan: Plan) -> Iterator[Finding]:
    titles: dict[str, list[str]] = {}
    for key, title in plan.compared.items():
        known = plan.rows[key].ranges.get(LOSS_LR)
        if known and not known.choices:
            titles.setdefault("{:g} to {:g}".format(*known.ends), []).append(title)
    if len(titles) > 1:
        parts = [f"{ends} for {few(of_range)}" for ends, of_range in titles.items()]
        text = f"Learning rates of a loss's own parameters are searched in {len(titles)} ranges: {'; '.join(parts)}."
        detail = f"Their cards have them; `ranges` in the experiment's file can give all one ({LOSS_LR})."
        yield Finding("note", text, "search", detail)


def _batches(rows: _Rows) -> Iterator[Finding]:
    titles: dict[str, list[str]] = {}
    for title, recipe in rows.items():
        titles.setdefault(recipe.images_of_a_class, []).append(title)
    if len(titles) > 1:
        parts = [f"{images} for {few(of_number)}" for images, of_number in titles.items()]
        can_move = "The number alone can move a loss by more than losses differ"
        detail = f"{can_move} (`--set search.equal_spaces=true` searches it)."
        yield Finding("limit", f"Images of a class in a batch: {'; '.join(parts)}.", "training", detail)


def _arguments(rows: _Rows) -> Iterator[Finding]:
    fixed = [
        f"{title} {', '.join(f'{name} {value:g}' for name, value in recipe.fixed.items())}"
        for title, recipe in rows.items()
        if recipe.fixed
    ]
    if fixed:
        yield Finding("note", f"Arguments of losses that are not searched: {joined(fixed)}.", "search")


def readings_of(found: ExperimentAnswer) -> dict[str, dict[str, float]]:
    """Return the families of two readings or more by card: the means of the rows that have one."""
    families: dict[str, dict[str, float]] = {}
    for variant in found.measured.plan.experiment.variants:
        if variant.reading and variant.key in found.intervals:
            family = families.setdefault(PurePath(variant.of).stem, {})
            family[variant.key] = found.intervals[variant.key].mean
    return {card: rows for card, rows in families.items() if len(rows) > 1}


def reading_findings(found: ExperimentAnswer) -> Iterator[Finding]:
    """Say how much the reading of each recipe decides, beside the range of the other rows."""
    scaling = found.scaling
    for card, rows in readings_of(found).items():
        others = [interval.mean for row, interval in found.intervals.items() if row not in rows]
        decided = scaling.gap_words(max(rows.values()) - min(rows.values()))
        have = f"its {len(rows)} readings have {scaling.scores(rows.values())}{scaling.unit}"
        if others:
            have += f", {counted(len(others), 'other row')} {scaling.scores(others)}{scaling.unit}"
        text = f"The reading of {card} decides {decided}: {have}."
        yield Finding("limit", text, "comparison", " ".join(_verdicts(rows, found)))


def _verdicts(rows: Mapping[str, float], found: Answer) -> Iterator[str]:
    if found.interim:
        return
    within = [pair for pair in found.shown_pairs if pair.a in rows and pair.b in rows]
    if within:
        ahead = [pair for pair in within if pair.ahead]
        differ = len(ahead) + sum(pair.better is not None for pair in within)
        words = f"Of {counted(len(within), 'pair')} of readings {differ} differ"
        if ahead:
            limits = listed(list(dict.fromkeys(extent for pair in ahead for extent in pair.extents)))
            words += f", {'all' if len(ahead) == differ else len(ahead)} only {limits}"
        yield f"{words}."
    verdicts: dict[str, set[str]] = {}
    for pair in found.shown_pairs:
        if (pair.a in rows) != (pair.b in rows):
            reading, other = (pair.a, pair.b) if pair.a in rows else (pair.b, pair.a)
            # Better or only ahead is a matter of cut-offs, not of how a recipe is read.
            better = pair.better or pair.ahead or pair.direction
            verdicts.setdefault(other, set()).add("reading" if better == reading else better)
    if depending := [found.titles[other] for other, better in verdicts.items() if len(better) > 1]:
        yield f"The verdict against {listed(depending)} depends on the reading."
    elif verdicts:
        yield "No verdict against another row depends on the reading."


def contrast_findings(found: Answer, contrasts: Sequence[ContrastAnswer]) -> Iterator[Finding]:
    """Say what each contrast shows, or what would have shown."""
    for one in contrasts:
        groups = (listed([found.titles.get(key, key) for key in keys]) for keys in (one.asked.a, one.asked.b))
        of_a, of_b = (f"the mean of {group}" if " and " in group else group for group in groups)
        if one.difference is None or one.smallest is None or one.p_better is None:
            yield Finding("limit", f"Contrast, {one.asked.title}: no answer, because {one.untested}.", "comparison")
            continue
        verdict = "shown" if one.shown else f"shown {one.extent}" if one.ahead else "cannot tell"
        scaling = found.scaling
        seen = "no difference" if scaling.is_beyond(one.smallest) else scaling.gap(one.smallest)
        corrected = f", corrected for {len(contrasts)} contrasts" if len(contrasts) > 1 else ""
        text = f"Contrast, {one.asked.title}: {of_a} minus {of_b} is "
        text += scaling.gap(one.difference, one.half_width, more=True, signed=True)
        p = f"p {one.p_better:.3f}" if one.p_better >= 0.001 else "p < 0.001"
        detail = f"{p}{corrected}{'' if one.shown or one.ahead else f'; {seen} would have shown'}"
        if one.means_disagree and one.difference_of_all is not None:
            detail = f"with failed {found.sample.words} {scaling.gap(one.difference_of_all, more=True, signed=True)}"
        yield Finding("limit", f"{text}{scaling.gap_unit}, {verdict} ({detail}).", "comparison")
