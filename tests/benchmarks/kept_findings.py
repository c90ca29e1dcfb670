"""What kept records say: the README's table, short tables of scores, and what a start of the embedder is worth."""

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy import stats

from reports.board.boards import Board
from reports.tables.formats import to_markdown
from reports.tables.result_table import result_cells, table_of
from reports.tables.table import Column, Row, Table
from results.statistics.comparison_result import ComparisonResult
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.store.experiment_results import FOLDER, MeasuredExperiment
from results.wording import listed
from tests.benchmarks.board_calibration import kept_board
from tests.benchmarks.kept_claims import elsewhere_counts
from tests.benchmarks.search_variance import OUT

BOARD = {
    "reality_check_birds_subset": "frozen birds",
    "reality_check_glyphs": "glyphs",
    "reality_check_handwriting": "handwriting",
}
SIX = {
    "search_variance_birds_subset": "frozen birds in six searches of 20 trials",
    "search_variance_glyphs": "glyphs in six searches",
    "search_variance_handwriting": "handwriting in six searches",
}
"""Records of six searches of eight of the losses."""
SCRATCH = ("reality_check_glyphs", "reality_check_handwriting")
"""The records of networks that learn from scratch."""
_GLYPHS = "reality_check_glyphs"
_COMPONENTS = "mlrc_frozen_cub200_subset"


def findings_markdown() -> str:
    """Return the questions that kept records answer, each with its answer and its record, as a table in Markdown."""
    rows = [_over_datasets(), _searches(), _highest(), _first(), _claims(), _frozen(), _start(), _fine_tuned()]
    return "\n".join(["| question | answer | record |", "|---|---|---|", *rows])


def board_scores_markdown() -> str:
    """Return the primary score of each method on each dataset of the board in Markdown."""
    measured = [MeasuredExperiment.kept(record) for record in BOARD]
    (score,) = {primary_score(one) for one in measured}
    tables = [{row.key: row for row in table_of(one).rows} for one in measured]
    rows = [
        Row.single(row.head, [result_cells(table[key])[score.embeddings, score.metric] for table in tables])
        for key, row in tables[0].items()
    ]
    columns = tuple(Column(where) for where in BOARD.values())
    return "\n".join(line for line in to_markdown(Table("", "", columns, tuple(rows))).splitlines() if line[:1] == "|")


def told_alike(board: Board) -> list[tuple[str, str]]:
    """Return the better and the worse method of each pair whose direction is the same on all datasets."""
    told = [pair for pair in board.pairs() if pair.verdict in ("consistent", "same on both")]
    return [(pair.a, pair.b) if pair.on[0].difference > 0 else (pair.b, pair.a) for pair in told]


def _over_datasets() -> str:
    board = kept_board(tuple(BOARD))
    pairs, told = board.pairs(), told_alike(board)
    depends = sum(pair.verdict == "depends on the dataset" for pair in pairs)
    alike = float(np.mean([one.same_order for one in board.agreements]))
    answer = (
        f"{len(told)} of {len(pairs)} pairs of {len(board.methods)} losses; {depends} depend on the dataset, "
        f"{len(pairs) - len(told) - depends} cannot be told. On {listed([BOARD[record] for record in SCRATCH])} alone: "
        f"{len(told_alike(kept_board(SCRATCH)))}. Two datasets have the same order of two losses in "
        f"{100 * alike:.0f} % of cases"
    )
    return _row(f"Which differences are the same on {listed(list(BOARD.values()))}?", answer, *BOARD)


def _searches() -> str:
    said = json.loads(OUT.read_text(encoding="utf-8"))
    found = {
        where: [said[record][of][0] for of in ("between_searches", "between_runs")]
        for record, where in (BOARD | SIX).items()
    }
    answers = [f"{search:.2f} ({run:.2f}) on {where}" for where, (search, run) in found.items()]
    question = "How far apart do searches of one loss end (deviation of concatenated MAP@R; in brackets, of runs)?"
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
    files = [f"{record}.json" if (FOLDER / f"{record}.json").exists() else f"{record}.json.xz" for record in records]
    links = ", ".join(f"[{number}](results/measured/{file})" for number, file in enumerate(files, start=1))
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
