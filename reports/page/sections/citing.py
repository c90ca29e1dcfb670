"""How to cite the results: BibTeX, a paragraph on the methods, and the sources of the compared methods."""

from contextlib import suppress
from importlib import metadata

from reports.page.content import Command
from reports.page.material import Material
from reports.page.sections.answer import if_searches_vary
from reports.wording import asked_pairs, capitalized, counted, runs
from results.spec.data_choice import samples_word
from results.statistics.comparison_result import ComparisonResult

_PACKAGE = "metric-learning-reproductions"

_PROTOCOL_PAPER = """\
@inproceedings{musgrave2020metric,
  title     = {A Metric Learning Reality Check},
  author    = {Musgrave, Kevin and Belongie, Serge and Lim, Ser-Nam},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year      = {2020}
}"""


def citing(material: Material) -> tuple[Command, ...]:
    """Write what to paste into a paper; nothing without runs."""
    if not material.records:
        return ()
    return (
        Command(_paragraph(material), "A paragraph for the methods section, with the numbers of this experiment:"),
        Command(f"{_software(material)}\n\n{_PROTOCOL_PAPER}", "BibTeX of the suite and of the protocol's paper:"),
        *(Command(*_permanent(commit, material.repository)) for commit in _known_commits(material)),
    )


def _permanent(commit: str, repository: str) -> tuple[str, str]:
    if repository:
        return f"{repository}/commit/{commit}", "Permanent link to the code of the runs:"
    return commit, "Commit of the code of the runs (the address of its repository is not recorded):"


def _known_commits(material: Material) -> list[str]:
    commits = {run.provenance.commit for own in material.records.values() for run in own}
    return sorted(commits - {"unknown"})


def _paragraph(material: Material) -> str:
    summary, comparison = material.measured.summary, material.comparison
    first = next(iter(material.records.values()))[0]
    protocol = {
        "mlrc": "with the protocol of A Metric Learning Reality Check (Musgrave et al., 2020)",
    }.get(summary.experiment.protocol, f"with the suite's protocol '{summary.experiment.protocol}'")
    count = "one method" if len(material.records) == 1 else f"{len(material.records)} methods"
    sentences = [f"We tested {count} on {first.dataset} {protocol}, using {_PACKAGE}{_commits(material)}."]
    counts = sorted({len(own) for own in material.records.values()})
    repeated = runs(counts[0]) if len(counts) == 1 else f"{counts[0]} to {runs(counts[-1])}"
    searches = summary.experiment.search.searches
    if summary.trials:
        times = "" if searches == 1 else f"{searches} times from other seeds, each time "
        found = "the setting found was" if searches == 1 else "the settings found were"
        sentences.append(
            f"Hyperparameters were searched {times}with {counted(summary.trials, 'trial')} per method on validation "
            f"classes, and {found} trained again with new seeds ({repeated} per method)."
        )
        if summary.experiment.search.racing:
            sentences.append("Trials that were clearly behind the best trial on the same folds got no more folds.")
    else:
        sentences.append(f"Hyperparameters were not searched; there are {repeated} per method.")
    sentences.append(
        f"A run has {counted(material.folds, 'model')}. Scores are measured on {first.test_images:,} "
        f"{samples_word(first.dataset)} of {first.test_classes:,} test classes."
    )
    if comparison is not None and comparison.tested:
        sentences.append(_tests(material, comparison))
    return " ".join(sentences)


def _tests(material: Material, comparison: ComparisonResult) -> str:
    unit = {
        "search": "means of searches",
        "run": "runs of the given settings",
        "single search": "single searches with an assumed deviation between searches",
    }[comparison.unit]
    pairs = capitalized(asked_pairs(comparison, material.titles))
    were = "were" if comparison.compare == "all" else "was"
    return (
        f"{pairs} {were} compared in {material.scores[0].name} with t-tests over {unit}. The probability of any wrong "
        f'claim, "better" or "equal within {100 * comparison.margin:g} points", is at most '
        f"{100 * comparison.alpha:g} %{if_searches_vary(comparison)}."
    )


def _commits(material: Material) -> str:
    provenances = [run.provenance for own in material.records.values() for run in own]
    commits = {provenance.commit for provenance in provenances}
    if len(commits) > 1:
        return f" at {len(commits)} commits"
    changed = " with uncommitted changes" if any(provenance.tree_dirty for provenance in provenances) else ""
    return f" at commit {commits.pop()}{changed}"


def _software(material: Material) -> str:
    fields = {
        "title": "Metric-learning reproductions: deep metric learning under the Metric Learning Reality Check protocol",
        "author": f"{{the authors of {_PACKAGE}}}",
    }
    with suppress(metadata.PackageNotFoundError):
        fields["version"] = metadata.version(_PACKAGE)
    commits = _known_commits(material)
    if material.repository and commits:
        fields["url"] = f"{material.repository}/commit/{commits[0]}" if len(commits) == 1 else material.repository
    fields["note"] = f"Commit {', '.join(commits) or 'unknown'}"
    lines = [f"  {name:<7} = {{{value}}}" for name, value in fields.items()]
    return "@software{metric_learning_reproductions,\n" + ",\n".join(lines) + "\n}"
