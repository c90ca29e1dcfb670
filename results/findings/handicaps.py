"""Findings about methods whose cards put them at a disadvantage beside the others of their experiment."""

from collections.abc import Iterator, Mapping

from results.answer.finding import Finding
from results.records.experiment_summary import ExperimentSummary
from results.spec.recipe import BATCHES, LOSS_LR, Recipe
from results.wording import counted, joined

_Rows = Mapping[str, Recipe]
"""Recipes of the methods that are compared, by title."""


def handicaps(summary: ExperimentSummary) -> Iterator[Finding]:
    """Say which of the compared methods are trained or searched worse than the others by their cards alone.

    Nothing is said of methods without a recipe, as in experiments that an earlier release recorded.
    """
    rows = {title: summary.recipes[key] for key, title in summary.compared.items() if key in summary.recipes}
    if any(recipe.searched for recipe in rows.values()):
        yield from _rates(rows)
        yield from _arguments(rows)
    yield from _batches(rows)
    if stuck := [title for title, recipe in rows.items() if recipe.falls is False]:
        text = f"Losses that do not fall while random embeddings are trained with them: {joined(stuck)}."
        yield Finding(
            "warning", text, "training", "What their cards fix, such as a rate or a scale, may not suit them."
        )


def _rates(rows: _Rows) -> Iterator[Finding]:
    searched = sum(LOSS_LR in recipe.searched for recipe in rows.values())
    fixed = [
        f"{title} {'that of the network' if recipe.loss_lr is None else f'{recipe.loss_lr:g}'}"
        for title, recipe in rows.items()
        if recipe.parameters and LOSS_LR not in recipe.searched
    ]
    if fixed and searched:
        text = f"Learning rates of a loss's own parameters that are not searched: {joined(fixed)}."
        detail = f"Those of {counted(searched, 'other method')} are searched ({LOSS_LR})."
        yield Finding("warning", text, "search", detail)


def _batches(rows: _Rows) -> Iterator[Finding]:
    proxies = {title: one for title, one in rows.items() if one.parameters == "proxies" and BATCHES not in one.searched}
    single = sum(recipe.samples_per_class == 1 for recipe in proxies.values())
    several = [f"{title} {one.samples_per_class}" for title, one in proxies.items() if one.samples_per_class > 1]
    if several and single >= len(several):
        text = f"Losses with proxies whose batches hold several images of a class: {joined(several)}."
        detail = f"Those of {counted(single, 'other method')} hold one, and so more classes ({BATCHES})."
        yield Finding("warning", text, "training", detail)


def _arguments(rows: _Rows) -> Iterator[Finding]:
    fixed = [
        f"{title} {', '.join(f'{name} {value:g}' for name, value in recipe.fixed.items())}"
        for title, recipe in rows.items()
        if recipe.fixed
    ]
    if fixed:
        yield Finding("note", f"Arguments of losses that are not searched: {joined(fixed)}.", "search")
