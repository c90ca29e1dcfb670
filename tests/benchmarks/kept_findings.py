"""What kept records say: the README's table, short tables of scores, and what a start of the embedder is worth."""

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy import stats

from reports.board.board_table import board_table
from reports.board.board_words import sorted_pairs
from reports.tables.formats import to_markdown
from reports.tables.result_table import result_cells, table_of
from reports.tables.table import Column, Row, Table, cell_text
from reports.wording import listed
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison_result import ComparisonResult
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.board_calibration import kept_board
from tests.benchmarks.kept_claims import elsewhere_counts
from tests.benchmarks.search_variance import OUT

BOARD = {
    "reality_check_birds_subset": "frozen birds",
    "reality_check_glyphs": "glyphs",
    "reality_check_handwriting": "handwriting",
}
_GLYPHS = "reality_check_glyphs"
_COMPONENTS = "mlrc_frozen_cub200_subset"


def findings_markdown() -> str:
    """Return the questions that kept records answer, each with its answer and its record, as a table in Markdown."""
    rows = [_over_datasets(), _searches(), _highest(), _first(), _claims(), _frozen(), _start(), _fine_tuned()]
    return "\n".join(["| question | answer | record |", "|---|---|---|", *rows])


def scores_markdown(record: str) -> str:
    """Return a record's results in Markdown without notes: its primary score first, then two of single models."""
    measured = MeasuredExperiment.kept(record)
    table, score = table_of(measured), primary_score(measured)
    shown = ((score.embeddings, score.metric), ("separated", "map_at_r"), ("separated", "precision_at_1"))
    columns = [Column(HEADLINE_METRICS[metric], group=kind) for kind, metric in shown]
    rows = []
    for row in table.rows:
        cells = result_cells(row)
        rows.append(Row.single(row.head, [*(cells[column] for column in shown), row.lines[0].cells[0]], sign=row.sign))
    short = Table("", "", (*columns, table.columns[0]), tuple(rows))
    return "\n".join(line for line in to_markdown(short).splitlines() if line.startswith("|"))


def differences_markdown() -> str:
    """Return the differences on all datasets of the board in Markdown, with their mean and verdict."""
    board = kept_board(tuple(BOARD))
    table = board_table(board)
    rows = [f"| difference | {' | '.join(BOARD.values())} | mean | on all |", f"|---|{'--:|' * (len(BOARD) + 1)}---|"]
    for row, pair in zip(table.rows, sorted_pairs(board.pairs()), strict=True):
        cells = [cell_text(cell) for cell in row.lines[0].cells[: len(BOARD)]]
        assert pair.mean is not None
        mean = f"{100 * pair.mean.mean:+.2f} ± {100 * pair.mean.half_width:.2f}"
        rows.append(f"| {' | '.join([row.head, *cells, mean, pair.verdict])} |")
    return "\n".join(rows)


def _over_datasets() -> str:
    board = kept_board(tuple(BOARD))
    pairs = board.pairs()
    told = [pair for pair in pairs if pair.verdict in ("consistent", "same on both")]
    sides = [(pair.a, pair.b) if pair.ahead[0] else (pair.b, pair.a) for pair in told]
    names = "; ".join(f"{board.methods[above]} above {board.methods[below]}" for above, below in sides)
    depends = sum(pair.verdict == "depends on the dataset" for pair in pairs)
    answer = f"{len(told)} of {len(pairs)} pairs of {len(board.methods)} losses{f' ({names})' if names else ''}"
    alike = float(np.mean([one.same_order for one in board.agreements]))
    answer += (
        f"; {depends} depend on the dataset, {len(pairs) - len(told) - depends} cannot be told. Two datasets have the "
    )
    answer += f"same order of two losses in {100 * alike:.0f} % of cases"
    return _row(f"Which differences are the same on {listed(list(BOARD.values()))}?", answer, *BOARD)


def _searches() -> str:
    said = json.loads(OUT.read_text(encoding="utf-8"))
    found = {
        where: [said[record][of][0] for of in ("between_searches", "between_runs")] for record, where in BOARD.items()
    }
    answers = [f"{search:.2f} on {where}, runs of one setting {run:.2f}" for where, (search, run) in found.items()]
    question = "How far apart do searches of one loss end (deviation of concatenated MAP@R)?"
    return _row(question, "; ".join(answers), "search_variance")


def _compared_on_glyphs() -> tuple[ComparisonResult, dict[str, str]]:
    measured = MeasuredExperiment.kept(_GLYPHS)
    comparison = primary_comparison(measured)
    assert comparison is not None
    return comparison, measured.summary.methods


def _highest() -> str:
    comparison, titles = _compared_on_glyphs()
    others = [method for method in comparison.methods if method != comparison.highest]
    pairs = [comparison.pair(comparison.highest, method) for method in others]
    tied = sum(pair is not None and pair.better is None for pair in pairs)
    means = [100 * own.mean for own in comparison.values.values()]
    answer = (
        f"{titles[comparison.highest]} is highest, {tied} others are not shown to be worse; "
        f"{min(means):.1f} to {max(means):.1f} % concatenated MAP@R"
    )
    return _row(f"Which of {len(means)} losses is the best on glyphs?", answer, _GLYPHS)


def first_places(means: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how often each method is the highest if one of its values is drawn for each, the most often first."""
    values = {method: np.asarray(own) for method, own in means.items()}
    shares = {
        method: float(
            np.mean([np.prod([(of < value).mean() for key, of in values.items() if key != method]) for value in own])
        )
        for method, own in values.items()
    }
    return {method: share for method, share in sorted(shares.items(), key=lambda one: -one[1]) if share > 0}


def _first() -> str:
    comparison, titles = _compared_on_glyphs()
    shares = first_places({method: own.units for method, own in comparison.values.items()})
    answer = ", ".join(f"{titles[method]} in {100 * share:.0f} %" for method, share in shares.items())
    return _row("And if each is searched once, who is first?", f"{answer} of the choices of a search of each", _GLYPHS)


def _claims() -> str:
    counts = elsewhere_counts("reality_check/glyphs", MeasuredExperiment.kept(_GLYPHS))
    return _row("Are the papers' claims seen on glyphs?", counts, _GLYPHS)


def _frozen() -> str:
    means = _means(_COMPONENTS)
    untrained, components = means.pop("untrained"), means.pop("pretrained_pca")
    answer = (
        f"yes: {len(means)} losses have {_range(means.values())} separated MAP@R, the 1280 features {untrained:.1f} %, "
        f"their 128 principal components {components:.1f} %"
    )
    return _row("Does training help on frozen features of birds?", answer, _COMPONENTS)


def _start() -> str:
    record = "mlrc_frozen_cub200_random_start_subset"
    titles, random, components = MeasuredExperiment.kept(record).summary.methods, _means(record), _means(_COMPONENTS)
    answer = "; ".join(
        f"{title} {components[method]:.1f} % from principal components, {random[method]:.1f} % from a random start"
        for method, title in titles.items()
    )
    return _row("What is the embedder's start worth there?", answer, record)


def _fine_tuned() -> str:
    record = "cub200_small_subset"
    means = _means(record)
    untrained = means.pop("untrained")
    answer = f"{len(means)} losses have {_range(means.values())} separated MAP@R, the raw features {untrained:.1f} %"
    return _row("What does fine-tuning at 96 pixels give?", answer, record)


def _means(record: str) -> dict[str, float]:
    """Mean over runs of separated MAP@R in percent, by method, in the order of the experiment's runs."""
    values: dict[str, list[float]] = {}
    for run in MeasuredExperiment.kept(record).records:
        values.setdefault(run.method, []).append(100 * run.separated.map_at_r)
    return {method: float(np.mean(own)) for method, own in values.items()}


def _range(means: Collection[float]) -> str:
    return f"{min(means):.1f} to {max(means):.1f} %"


def _row(question: str, answer: str, *records: str) -> str:
    links = ", ".join(f"[{number}](results/measured/{record}.json)" for number, record in enumerate(records, start=1))
    return f"| {question} | {answer} | {links} |"


def starts_markdown() -> str:
    """Return P@1 from torch's start, how far that from two others is above it, by loss and size."""
    record = "embedder_start_{}_frozen_cub200_subset"
    torch_start, *others = (_runs(record.format(start)) for start in ("torch", "kaiming", "pca"))
    titles = MeasuredExperiment.kept(record.format("torch")).summary.methods
    losses, sizes = (dict.fromkeys(keys) for keys in zip(*sorted(torch_start), strict=True))
    head = "torch; Kaiming, fan-out; components"
    rows = [f"| {head} | {' | '.join(f'{size} dimensions' for size in sizes)} |", f"|---|{'--:|' * len(sizes)}"]
    for loss in losses:
        cells = []
        for size in sizes:
            before = torch_start[loss, size]
            changes = [_change(before, other[loss, size]) for other in others]
            cells.append("; ".join([f"{np.mean(before):.1f}", *changes]))
        rows.append(f"| {titles[loss]} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _change(before: Sequence[float], after: Sequence[float]) -> str:
    """The difference of two means with its 95 % interval (Welch)."""
    interval = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    return f"{np.mean(after) - np.mean(before):+.2f} ± {(interval.high - interval.low) / 2:.2f}"


def _runs(record: str) -> dict[tuple[str, int], list[float]]:
    """Separated P@1 of all runs in percent, by loss and dimensions."""
    runs: dict[tuple[str, int], list[float]] = {}
    for run in MeasuredExperiment.kept(record).records:
        loss = run.method.partition("__")[0]
        runs.setdefault((loss, run.dimensions), []).append(100 * run.separated.precision_at_1)
    return runs
