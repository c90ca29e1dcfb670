"""The answer of an experiment in one or two sentences, winners first, in a line for each comparison, and in a table.

All claims are those of the experiment's one comparison, on its primary score. While searches or runs are missing
nothing is claimed.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from reports.tables.differences import open_words, seen_words
from reports.tables.result_table import count_title, score_title, table_of
from reports.tables.table import Table
from results.answer.answers import Answer
from results.answer.compare import find_pair
from results.answer.values import MOST_RUNS, Pair
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import capitalized, counted, few, first_of, joined, listed, verb

NAMED = 3
"""Largest number of methods or pairs that are named. More are counted."""

MOST_LINES = 6
"""Of all pairs, if there are more, only so many with the highest mean have a line."""


def headline(found: Answer) -> str:
    """Say which methods are better, or that this cannot be told yet."""
    if not found.runs:
        return "No run is complete yet."
    if not found.compared:
        interim = found.runs.keys() & set(found.question.compared)
        return "Interim: no search is complete yet." if interim else "No method has runs under the common conditions."
    if len(found.question.compared) == 1 and found.gains:
        return f"{_line(found.gains[0], found)}."
    if len(found.question.compared) == 1:
        return f"{_means(found)}: there is no other method to compare it with."
    if found.interim:
        return f"Interim: {_means(found)}. Nothing is claimed before all searches and runs are there."
    if found.only and not found.shown_pairs:
        return f"{_means(found)}: no pair of these was asked for."
    if not found.sample.counted:
        return f"Nothing says how many {found.sample.words} are behind each mean. {' '.join(_if_counted(found))}"
    turned = "".join(f" Cannot tell: {words}." for words in _without_agreement(found))
    if found.claims:
        return " ".join([*_claims(found), *_only_so_far(found)]) + turned
    if turned and len(found.shown_pairs) == 1:
        return turned.strip()
    if found.shown_pairs and all(pair.size == "within" for pair in found.shown_pairs):
        methods = [found.titles[key] for key in found.order]
        every = "All " if len(methods) > NAMED else ""
        margin = found.question.margin_words
        return f"{every}{few(methods)} are equal within {margin}{_given(found)}."
    if found.limited:
        means = _means(found) if len(found.limited) <= NAMED else f"The {found.best_words}: {_mean(found, found.best)}"
        return " ".join([*_only_so_far(found), f"{means}."]) + turned
    return f"Cannot tell yet: {_means(found)}. {_would_show(found)}{turned}"


def comparison_lines(found: Answer) -> list[str]:
    """Say what each comparison that was asked for shows, in a line; of many pairs, a few with the highest mean.

    The gains over default settings come last, the largest first.
    """
    if found.interim:
        return []
    pairs = found.shown_pairs
    if found.reference is None and len(pairs) > MOST_LINES:
        pairs = [pair for pair in pairs if found.best in (pair.a, pair.b)][:MOST_LINES]
    return [_line(pair, found) for pair in (*pairs, *found.gains[:MOST_LINES])]


def short_table(found: Answer) -> Table:
    """Build the table for the end of a run: precision@1, the primary score and ranks, in the order of the answer."""
    whole, question, order = table_of(found), found.question, found.order
    scores = [score_title(question.embeddings, metric) for metric in dict.fromkeys(("precision_at_1", question.score))]
    ranks = ["rank"] if found.final_ranks else []
    shown = whole.with_columns([*scores, *ranks, count_title(question)])
    plain = [replace(row, cells=[replace(cell, leads=False) for cell in row.cells]) for row in shown.rows]
    plain.sort(key=lambda row: order.index(row.key) if row.key in order else len(order))
    return replace(shown, rows=tuple(plain))


def _line(pair: Pair, found: Answer) -> str:
    titles = found.titles
    if pair.better and pair.worse:
        return f"{titles[pair.better]} beats {titles[pair.worse]} by {_points(pair, found)}"
    if pair.ahead:
        ahead = pair if pair.ahead == pair.a else pair.turned()
        return f"{titles[ahead.a]} is {_points(ahead, found)} above {titles[ahead.b]} {pair.extent}"
    if pair.size == "within":
        margin = found.question.margin_words
        return f"{titles[pair.a]} and {titles[pair.b]} are equal within {margin}"
    way = "above" if pair.difference >= 0 else "below"
    return f"{titles[pair.a]} is {_points(pair, found)} {way} {titles[pair.b]}: {open_words(found, pair)}"


def _claims(found: Answer) -> Iterator[str]:
    """Name the winner of most pairs, or the pairs if the leading method wins none; then what cannot be told."""
    titles, (subject, *others) = found.titles, found.order
    pairs = [pair for key in others if (pair := found.pair(subject, key))]
    won = [pair for pair in pairs if pair.better == subject]
    lost = [pair for pair in pairs if pair.worse == subject]
    given, title = _given(found), titles[subject]
    if lost:
        largest = _points(max(lost, key=lambda pair: abs(pair.difference)), found, score=True)
        lead = f" by {largest}" if len(lost) == 1 else f", by up to {largest}"
        yield f"{few([titles[pair.b] for pair in lost])} {verb(len(lost), 'beat')} {title}{lead}{given}."
    if won:
        every = not found.only and len(won) == len(found.compared) - 1 > 1
        beaten = "every other method" if every else few([titles[pair.b] for pair in won])
        next_one = f", the next, {titles[won[0].b]}," if every else ""
        lead = f" by {_points(won[0], found, score=not lost)}" if every or len(won) == 1 else ""
        yield f"{title} beats {beaten}{next_one}{lead}{'' if lost else given}."
    if not won and not lost:
        decided = [pair for pair in found.shown_pairs if pair.better]
        shown = [f"{titles[pair.better or '']} beats {titles[pair.worse or '']}" for pair in decided]
        of = f"{len(decided)} of {counted(len(found.shown_pairs), 'pair')} {verb(len(decided), 'differ')}{given}"
        yield f"{'; '.join(shown)}{given}." if len(shown) <= NAMED else f"{of}; {title} has the {found.best_words}."
    open_pairs = [pair for pair in pairs if not pair.better and not pair.ahead and not pair.means_disagree]
    if open_pairs and (won or lost):
        named, seen = few([titles[pair.b] for pair in open_pairs], "others"), ""
        if len(found.limited) <= NAMED:
            seen = seen_words(found, open_pairs)
        seen = f" ({seen.removeprefix('a difference of ')})" if seen else ""
        yield f"Open: {named}{seen}." if lost else f"It cannot be told from {named}{seen}."


def if_so_many(found: Answer, pair: Pair, *, score: bool = False) -> str:
    """Say of how many runs the means must be so that a pair differs, where nothing says it: no verdict."""
    pair = pair if pair.a == pair.higher else pair.turned()
    a, b, words = found.titles[pair.a], found.titles[pair.b], found.sample.words
    if pair.fewest is None:
        return f"means of {MOST_RUNS} {words} each could not tell {a} from {b} either, {_points(pair, found)} apart"
    fewer = "" if pair.fewest == 2 else "; with fewer this cannot be told"
    size = _points(pair, found, score=score)
    return f"if {_each(found, pair.fewest)} {words} or more, {a} beats {b} by {size}{fewer}"


def _if_counted(found: Answer) -> Iterator[str]:
    """Say which differences usual numbers of runs would show, and what the method with the best mean would beat."""
    titles, words, pairs = found.titles, found.sample.words, found.shown_pairs
    if len(pairs) == 1:
        yield f"{capitalized(if_so_many(found, pairs[0], score=True))}."
        return
    shown = sorted(pair.fewest for pair in pairs if pair.fewest)
    first, *others = ((of, bisect_right(shown, of)) for of in (3, 5, 10, MOST_RUNS))
    more = listed([f"{count} if of {of}" for of, count in others])
    yield f"{first[1]} of {counted(len(pairs), 'pair')} would differ if {_each(found, first[0])} {words}, {more}."
    own = [pair for key in found.order if (pair := found.pair(found.best, key))]
    if found.reference not in (None, found.best) or not own:
        return
    beaten, best = [pair for pair in own if pair.fewest], titles[found.best]
    if not beaten:
        yield f"{best}, with the {found.best_words}, could not be told from any other with {MOST_RUNS} either."
        return
    named = "every other method" if len(beaten) == len(own) > 1 else few([titles[pair.b] for pair in beaten], "others")
    most = max(pair.fewest or 0 for pair in beaten)
    left = [titles[pair.b] for pair in own if not pair.fewest]
    beyond = f", and not {few(left, 'others')} with {MOST_RUNS} either" if left else ""
    yield f"{best} would beat {named} if {_each(found, most)} {words} or more{beyond}."


def _each(found: Answer, count: int) -> str:
    """The condition under which pairs of means differ: that so many runs are behind each."""
    kind = "standard error" if found.question.plus_minus == "se" else "deviation"
    return f"each ± is a {kind} of {count}"


def _only_so_far(found: Answer) -> Iterator[str]:
    """Say which methods are ahead of methods that were held up: that is no verdict about methods."""
    pairs = found.limited
    if not pairs:
        return
    if len(pairs) <= NAMED:
        yield f"No verdict about methods, but: {'; '.join(_line(pair, found) for pair in pairs)}."
        return
    limits = listed(list(dict.fromkeys(extent for pair in pairs for extent in pair.extents)))
    if found.claims:
        yield f"Only {limits}: {counted(len(pairs), 'further pair')}."
    else:
        of = f"a difference in {len(pairs)} of {counted(len(found.shown_pairs), 'pair')}"
        yield f"No verdict about methods: only {limits}, {of}."


def _without_agreement(found: Answer) -> list[str]:
    """Say of the pairs whose order failures turn how they differ without and with them.

    Of many pairs, only of those whose interval does not hold 0: nobody would call the others better anyway.
    """
    pairs = [pair for pair in found.without_agreement if find_pair(found.shown_pairs, pair.a, pair.b)]
    if len(found.shown_pairs) > 1:
        pairs = [pair for pair in pairs if abs(pair.difference) > (pair.half_width or 0.0)]
    words = [
        f"{found.titles[pair.a]} is {_points(pair, found)} {'above' if pair.difference > 0 else 'below'} "
        f"{found.titles[pair.b]}; "
        f"{found.with_failed_words(pair)}"
        for pair in pairs
    ]
    return first_of(words, NAMED)


def _points(pair: Pair, found: Answer, *, score: bool = False) -> str:
    """The difference of a pair with its interval and its unit: `2.0 ± 0.9 points`, of a score in a headline."""
    name = found.question.score
    of = f" {found.scaling.gap_of} {HEADLINE_METRICS.get(name, name)}" if score else ""
    return f"{found.difference_words(pair, size=True)}{found.scaling.gap_unit}{of}"


def _given(found: Answer) -> str:
    """What the claims rest on, where no search was repeated."""
    number = len(next(iter(found.runs.values())))
    return found.sample.given.replace("{n}", counted(number, found.sample.word)) + _that_remain(found)


def _that_remain(found: Answer) -> str:
    """Name what failed and is set aside, if claims are about what remains."""
    if found.sample.of_searches or not found.failed:
        return ""
    named = [
        f"{len(failed)} of {found.values[key].count} of {found.titles[key]}" for key, failed in found.failed.items()
    ]
    return f", in runs that did not fail ({'; '.join(first_of(named, NAMED))} failed)"


def _mean(found: Answer, key: str) -> str:
    return f"{found.titles[key]} {found.scaling.score(found.values[key].mean)}"


def _means(found: Answer) -> str:
    means = [_mean(found, key) for key in found.order]
    if len(means) <= NAMED:
        return joined(means)
    return f"{joined(means[:2])} and {counted(len(means) - 2, 'other')}"


def _would_show(found: Answer) -> str:
    span, seen = found.scaling.gap_words(found.span), seen_words(found, found.shown_pairs)
    none_apart = f"No two are told apart: the means span {span}"
    if found.reference is not None:
        largest = max((abs(pair.difference) for pair in found.shown_pairs if pair.p is not None), default=0.0)
        up_to = found.scaling.gap_words(largest)
        none_apart = f"None is told apart from {found.titles[found.reference]}: the differences are up to {up_to}"
    if found.sample.test == "ranks":
        if any(pair.untested == "fewer than 6 datasets" for pair in found.shown_pairs):
            return "Six datasets at least give a verdict."
        return f"{none_apart}."
    if found.would_have_shown(found.shown_pairs) is None:
        return f"Three {found.sample.words} of each would say more."
    if len(found.shown_pairs) == 1:
        return f"They are {span} apart; {seen}."
    return f"{none_apart}; {seen}."
