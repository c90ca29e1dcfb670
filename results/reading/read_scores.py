"""Anybody's table of scores as a frame (`results.records.frame`), and what a row of it repeats.

One row is one run, or one run and one metric, or a summary of runs. What the columns are follows from their names, and
from what varies within what. What is sure needs no option. All else is asked at once, with what it most likely is.
Every fault is a `ScoresError` with the number of the row.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd

from results.reading.columns import (
    COUNTERS,
    DONE,
    FAILED,
    LOWER,
    MISSING,
    NOTES,
    PARTS_OF_DATA,
    ROLES,
    ROW,
    SCALE,
    SPREADS,
    SWEEP,
    as_written,
    column_named,
    is_bounded,
    is_difference,
    is_error_rate,
    is_number,
    is_number_of_runs,
    is_only_time,
    is_role,
    is_score,
    is_setting,
    is_shared,
    is_size,
    is_summary,
    is_time,
    means_lower,
    metric_in,
    numbered,
    numbers_of,
    plain,
    rows_where,
    rows_words,
    spelled_alike,
    spread_of,
    texts_of,
    tidy,
    words_of,
)
from results.reading.read_export import read_export
from results.reading.scores_table import (
    ANOTHER_SCORE,
    COLUMNS,
    EACH_ROW,
    FEWEST_DATASETS,
    PLACES,
    AskedError,
    OpenQuestionsError,
    Reading,
    ReadScores,
    Repeats,
    ScoreScale,
    ScoresError,
    SdOrSe,
    check_filled,
    check_texts,
    left_out_rows,
    option,
    split,
)
from results.records.frame import OURS
from results.spec.mlrc_constants import is_in_percent
from results.wording import capitalized, counted, listed, some

PREFERRED = ("concatenated_map_at_r", "map_at_r", "separated_map_at_r")
"""Scores that are compared where none is named and several are there."""

_MOST_QUESTIONS = 12


_OF_RESULTS = frozenset({"method", "variant", "metric", "unit", "rank_low", "rank_high"})
_OF_CONDITIONS = frozenset({"a", "b", "condition", "verdict", "holds"})
"""Columns of the suite's own tables of results and of other conditions, whose rows are means and no runs."""


def read_scores(table: pd.DataFrame, reading: Reading | None = None) -> ReadScores:
    """Read a table of scores. The index has the numbers of its rows for messages.

    Raises:
        OpenQuestionsError: Something is not sure; it has all that is, and the reading that is most likely.
        ScoresError: A column is missing, or a row cannot be used.
    """
    reading, table = reading or Reading(), tidy(table)
    if {*table.columns} >= OURS:
        return read_export(table, reading)
    if {*table.columns} >= _OF_RESULTS or {*table.columns} >= _OF_CONDITIONS:
        raise ScoresError(
            "this is a table of results, which the suite wrote; give the scores of the runs that it was made from, or "
            "for those of a store the folder of `reproduce export runs`"
        )
    return _read_by_guesses(table, reading)


def _read_by_guesses(table: pd.DataFrame, reading: Reading) -> ReadScores:
    """Read a table by the most likely answers to what is not sure, and raise these questions at the end."""
    questions = list[tuple[str, str]]()
    for _ in range(_MOST_QUESTIONS):
        try:
            found = _Reader(table, reading).read()
        except AskedError as asked:
            if not asked.sure:
                questions.append((str(asked), asked.taken))
            reading = asked.guess
            continue
        except ScoresError as error:
            if not questions:
                raise
            raise OpenQuestionsError([*questions, (str(error), "")], reading, None) from error
        if questions:
            raise OpenQuestionsError(questions, reading, found)
        return found
    raise OpenQuestionsError(questions, reading, None)


class _Reader:
    """One reading of a table: the rows that are left, under their numbers, and what its columns are."""

    def __init__(self, table: pd.DataFrame, reading: Reading) -> None:
        self.table, self.reading, self.columns = table, reading, tuple(table.columns)
        self.said: list[str] = []
        self.why: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        self.method = self.dataset = self.search = self.block = self.fold = self.metric = ""
        self.runs: tuple[str, ...] = ()
        self.score = self.melted = self.spread = self.number = ""
        self.spread_kind: SdOrSe | None = None
        self.others: tuple[str, ...] = ()
        self.folds_behind = 0
        self.run_in_name = ""
        self.chosen = self.wide = False

    def read(self) -> ReadScores:
        self._without_failed()
        self.metric = self._names_of_metrics()
        self.table = rows_where(self.table, self.reading)
        self._find_methods()
        self._find_repeats()
        self._find_score()
        self._find_summary()
        self._take_rows()
        self._check_columns()
        self._check_repeats()
        places, lower = self._places(), self._direction()
        long = self._long(places)
        if self.dataset:
            kept = self._without_copies(places["dataset"], long)
            long = long[kept.reindex(long["at"]).to_numpy()]
        left_out = left_out_rows(long, self.score)
        check_texts(long, self.score)
        long, scale = self._scaled(long, lower=lower)
        if self._what_repeats(long[long["name"] == self.score])[0] == "dataset":
            long = self._without_dependent(long, logs=scale == "times")
        own = long[long["name"] == self.score]
        if lacking := [name for name in long["dataset"].unique() if name not in {*own["dataset"]}]:
            self.said.append(f"Left out: {some(lacking, 3)}, without {self.score}.")
            long = long[~long["dataset"].isin(lacking)]
        if len(own) == 1:
            raise ScoresError(f"nothing to compare: {own['method'].iloc[0]} has the only score in {self.score!r}")
        self._name_equal_rows(own)
        repeats, column = self._what_repeats(own)
        extra = ("deviation", "n") if self.spread else ()
        return ReadScores(
            long.assign(metric=long["name"], embeddings="")[
                [*PLACES, "embeddings", "metric", "value", *extra]
            ].reset_index(drop=True),
            self.score,
            scale,
            tuple(dict.fromkeys(long["name"])),
            repeats=repeats,
            column=column,
            folds=places["fold"].nunique() if repeats == "fold" else self.folds_behind,
            plus_minus=self.spread_kind,
            lower_is_better=lower,
            roles={role: name for role, name in self._roles(column).items() if name},
            unread={
                name: self.why[name]
                for name in self.columns
                if name in self.why and name not in {*long["name"], column}  # A summary's column has its deviations.
            },
            said=tuple(self.said),
            left_out=left_out,
        )

    # Columns by name

    @property
    def by_name(self) -> dict[str, str]:
        return {name.casefold(): name for name in self.table.columns}

    def _named(self, given: str) -> str:
        """The column that an option names; of several joined by `+`, one that has all of them."""
        wanted = plain(given)
        parts = wanted.split("+")
        if len(parts) == 1 or wanted.casefold() in self.by_name:
            return column_named(self.table, given)
        self.parts[wanted], cells = [self._named(part) for part in parts], []
        for part in self.parts[wanted]:
            bare = numbered(self.table[part])
            words = not is_number(self.table[part]) and not {*bare.str.casefold()} <= {"true", "false", ""}
            cells.append(bare if words else (part + "=" + bare).where(bare != "", ""))
        self.table = self.table.assign(
            **{wanted: pd.concat(cells, axis=1).agg(" ".join, axis=1).str.split().str.join(" ")}
        )
        return wanted

    def _of_role(self, role: str) -> list[str]:
        """The columns with a name of a role, those with a usual name first."""
        usual = [self.by_name[name] for name in ROLES[role][0] if name in self.by_name]
        others = [name for name in self.table.columns if is_role(name, role) and name not in usual]
        if role == "dataset":  # Not the loss of a benchmark.
            others = [name for name in others if not is_number(self.table[name])]
            constant = {name for name in others if texts_of(self.table[name]).nunique() == 1}
            others.sort(key=constant.__contains__)
        return usual + others

    def _first(self, role: str, given: str = "") -> str:
        return self._named(given) if given else next(iter(self._of_role(role)), "")

    def _keys(self, *names: str) -> list[pd.Series]:
        forms = {self.method: texts_of, self.dataset: as_written}
        return [forms.get(name, numbered)(self.table[name]) for name in names if name]

    @property
    def _repeats(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.search, self.block, self.fold, *self.runs)))

    @property
    def _parts(self) -> set[str]:
        """The columns that are a part of a joined one."""
        return {part for parts in self.parts.values() for part in parts}

    @property
    def _claimed(self) -> set[str]:
        named = {self.method, self.dataset, self.metric, self.spread, self.number, ""}
        return {*named, *self._repeats, *self.why, *self._parts}

    def _roles(self, column: str) -> dict[str, str]:
        runs = " and ".join(self.runs) if column not in (self.block, self.search) else ""
        return {
            **{"method": self.method, "dataset": self.dataset, "search": self.search, "paired": self.block},
            **{"fold": self.fold, "run": runs, "score": self.score, "deviation": self.spread, "n": self.number},
        }

    def _asks(self, text: str, **likely: Any) -> AskedError:
        return AskedError(text, self.reading, **likely)

    # Rows that are left out

    def _without_failed(self) -> None:
        """Leave out the runs that a tracker marks as crashed or not finished."""
        if not (column := self._first("state")):
            return
        states = texts_of(self.table[column]).str.casefold().str.removeprefix("trialstate.")
        if set(states) - DONE - FAILED - {""}:
            return
        self.why[column] = "the state of a run"
        gone = states.isin(FAILED)
        if not gone.any():
            return
        kinds = ", ".join(dict.fromkeys(texts_of(self.table.loc[gone, column])))
        if gone.all():
            raise ScoresError(f"no run is finished ({column}: {kinds})")
        self.said.append(f"Left out: {rows_words(self.table.index[gone])} ({column}: {kinds}).")
        self.table = self.table[~gone]

    def _leave_summaries_out(self, column: str, *, of_columns: bool) -> None:
        names = texts_of(self.table[column])
        sums = [name for name in names.unique() if is_summary(name, of_columns=of_columns)]
        if column == self.fold and (names == "").any():  # A mean over the folds has none.
            sums.append("")
        if sums and len(sums) < names.nunique():
            rows = self.table.index[names.isin(sums)]
            named = listed([name or "empty" for name in sums])
            self.said.append(f"Left out: {rows_words(rows)} ({column} {named}), which sum up others.")
            self.table = self.table[~names.isin(sums)]

    # Methods and datasets

    def _find_methods(self) -> None:
        asked = self.reading
        if asked.method != COLUMNS and asked.dataset != COLUMNS:
            self._melt_repeats()
        self.dataset = "" if asked.dataset == COLUMNS else self._first("dataset", asked.dataset)
        if asked.method == COLUMNS:
            self._melt("method")
        elif asked.method:
            self.method = self._named(asked.method)
        else:
            self.method = self._likely_method()
        if asked.dataset == COLUMNS:
            self._melt("dataset")
        elif not asked.method:
            self._ask_about_columns()
        if self.dataset == self.method:
            self.dataset = ""
        self._take_runs_out_of_names()
        if self.dataset:
            self._leave_summaries_out(self.dataset, of_columns=True)
        self._leave_summaries_out(self.method, of_columns=False)

    def _take_runs_out_of_names(self) -> None:
        """Split names such as `ppo_seed1` in method and run, where two methods have several; ask about `ppo-s1`."""
        name, asked = self.method, self.reading
        named = bool(asked.run) and self._named(asked.run) == name if asked.run != EACH_ROW else False
        if self.wide or asked.run == EACH_ROW or ((asked.method or {*self._of_role("run")} - {name}) and not named):
            return
        parts = texts_of(self.table[name]).str.extract(_RUN_IN_NAME)
        runs = parts.dropna().drop_duplicates()
        several = runs.groupby("method")["run"].nunique()
        if (several > 1).sum() < 2 or several.min() < 2:
            return
        words = {*runs["word"].str.casefold()}
        one = parts["method"].dropna().index[0]
        text = f"{name} holds the number of a run in names such as {self.table.loc[one, name]}"
        if not named and not words <= {"seed", "run", "rep"}:
            raise self._asks(
                f"{text}, if that is what {listed(sorted(words))} counts: {option('run', name)} takes it so, "
                f"{option('method', name)} takes each name as a method",
                run=name,
            )
        said = f"the methods are {some(list(several.index), 3)}; {option('method', name)} takes each name as one"
        self.said.append(f"{text}: {said}.")
        bare = parts["method"].fillna(texts_of(self.table[name]))
        self.run_in_name = "run"
        self.table = self.table.assign(**{name: bare, "run": parts["run"].fillna("")})

    def _likely_method(self) -> str:
        """The column of the methods: one of their names, else the only one of words that varies, else all columns."""
        by_role, words = self._of_role("method"), self._columns_of_words()
        counts = {name: texts_of(self.table[name]).nunique() for name in [*words, *by_role[:1]]}
        if by_role and by_role[0].casefold() == "method" and counts[by_role[0]] > 1:
            return by_role[0]
        several = [name for name in words if counts[name] > 1]
        varying = [name for name in several if counts[name] < len(self.table)]  # Names of runs are all different.
        usual = [name for name in by_role if name.casefold() in ROLES["method"][0]]
        tiers = [[name for name in tier if name in words] for tier in (usual, by_role, [ROW])]
        found = next(
            filter(None, [[n for n in tier if n in of] for of in (varying, several, words) for tier in tiers]), []
        )
        if not found:
            found = self._names_of_runs() or varying
            if self._are_columns(found):
                self._melt("method")
                return self.method
            found = found or (several if len(several) == 1 else [])
        if not found:
            return self._ask_for_method(by_role, words)
        first, *others = found
        rest = [n for n in others if len(self.table[[first, n]].drop_duplicates()) > max(counts[first], 1)]
        return self._ask_which(first, rest) if rest else first

    def _columns_of_words(self) -> list[str]:
        """The columns of words that could name methods."""
        table = self.table
        taken = {self.dataset, self.metric, *self.why, *self._parts, SWEEP}
        taken |= {name for role in ROLES if role != "method" for name in self._of_role(role)}
        free = [name for name in table.columns if name not in taken and not NOTES.fullmatch(name)]
        words = {name: texts_of(table[name]) for name in free if not is_number(table[name]) and name[-1:] != "±"}
        return [name for name, own in words.items() if own.any() and not own.str.match(r"-?\d|\[").all()]

    def _are_columns(self, named: Sequence[str]) -> bool:
        """Whether the methods are columns of numbers; asks if other columns could name them."""
        columns = [] if self._planned() else self._methods_in_columns()
        if len(columns) < 2 or any(map(is_score, self._numbers_in_columns())):
            return False
        rows = [*named, *([] if self.dataset else self._columns_of_words())]
        if rows and not (self.dataset and _metric_of(columns)):
            scores = bool(self._names_of_runs()) or any(spread_of(self.by_name, name)[0] for name in columns)
            raise self._asks(
                f"the methods could be the columns {some(columns, 3)} (--method {COLUMNS}), or {rows[0]} names "
                f"them ({option('method', rows[0])})",
                method=rows[0] if scores else COLUMNS,
            )
        return True

    def _ask_which(self, first: str, rest: Sequence[str]) -> str:
        """Ask which of several columns of words names the methods, or whether all do."""
        one = rest[0]
        if is_role(first, "method") and is_role(one, "method") and self._crosses(one, first) and not self.dataset:
            value = texts_of(self.table[first]).iloc[0]
            raise self._asks(
                f"{first} and {one} could both be the methods; name one with --method, and keep one value of the "
                f"other with --where, such as {option('method', one)} {option('where', f'{first}={value}')}, or "
                "answer for each with --dataset",
                method=one,
                dataset=first,
            )
        names = [name for name in self.table.columns if name in (first, *rest)]
        every = "+".join(names)
        raise self._asks(
            f"{listed(names)} could all name the methods: {option('method', names[0])} takes one, "
            f"{option('method', every)} each combination",
            method=every,
        )

    def _names_of_runs(self) -> list[str]:
        """The columns of runs that are words and no numbers, such as `lr0.1_mixup`: each could be a method."""
        runs = {name: texts_of(self.table[name]).str.replace(r"\d", "", regex=True) for name in self._of_role("run")}
        return [name for name, texts in runs.items() if texts.nunique() > 1]

    def _ask_for_method(self, by_role: Sequence[str], words: Sequence[str]) -> str:
        """Ask which columns name the methods: those of settings that vary, if there are any."""
        table, planned = self.table, self._planned()
        names, columns = ", ".join(ROLES["method"][0][:5]), some(list(table.columns))
        number = f" ({by_role[0]} holds numbers)" if by_role else ""
        text = f"no column of words is called {names}{number}; name the column of the methods with --method: {columns}"
        codes = [
            name for name in by_role if name in words or not texts_of(table[name]).str.contains(".", regex=False).any()
        ]
        likely = next((n for n in [*codes, *words] if texts_of(table[n]).nunique() > 1), "+".join(planned))
        if not likely:
            raise ScoresError(f"{text}; or add a column method that says which method a row is of")
        raise self._asks(text, method=likely)

    def _planned(self) -> list[str]:
        """The columns of settings that differ between rows, and not in all."""
        named = [name for name in self.table.columns if is_setting(name) and not is_size(name)]
        named = [name for name in named if name.casefold() not in COUNTERS]
        return [name for name in named if 1 < texts_of(self.table[name]).nunique() < len(self.table)]

    def _crosses(self, other: str, method: str) -> bool:
        """Whether a column of words has the same values for all methods."""
        words = not is_number(self.table[other])
        return words and is_shared(texts_of(self.table[other]), texts_of(self.table[method]))

    def _numbers_in_columns(self) -> list[str]:
        roles = {name for role in ROLES if role != "method" for name in self._of_role(role)}
        spreads = {spread_of(self.by_name, name)[0] for name in self.table.columns}
        taken = {*roles, *spreads, *self.why, self.method, self.dataset, self.metric, ROW}
        free = [name for name in self.table.columns if name not in taken]
        return [name for name in free if is_number(self.table[name])]

    def _methods_in_columns(self) -> list[str]:
        """The columns of numbers that are methods by their names: no scores, times, settings, counts or summaries.

        Where several begin or end with one score, as `rmse_lstm` and `rmse_arima`, these are.
        """
        numbers = self._numbers_in_columns()
        by_score = Counter(filter(None, map(metric_in, numbers)))
        score, count = next(iter(by_score.most_common(1)), ("", 0))
        if count > 1:
            return [name for name in numbers if metric_in(name) == score]
        return [name for name in numbers if not self._is_no_method(name)]

    def _is_no_method(self, name: str) -> bool:
        """Whether a column of numbers has the name of what is no method."""
        none = (
            is_score,
            is_only_time,
            is_summary,
            is_setting,
            is_size,
            is_number_of_runs,
            is_difference,
            NOTES.fullmatch,
        )
        return any(is_none(name) for is_none in none)

    def _ask_about_columns(self) -> None:
        """Ask about several columns of numbers without a name of a score: datasets, methods, or scores."""
        names = self._methods_in_columns()
        asked = self.reading.score or self.reading.best_of or self.reading.last or self.melted
        if asked or len(names) < 3 or self.metric or self._of_role("run"):
            return
        numbers = self._numbers_in_columns()
        if any(is_score(name) or spread_of(self.by_name, name)[1] in SPREADS.values() for name in numbers):
            return
        if self.table[self.method].nunique() < len(self.table):
            return
        rows = texts_of(self.table[self.method])
        sized = any(map(is_number_of_runs, self.table.columns))
        methods = len(self.table) > 2 * len(names) or sized or any(map(is_summary, rows))
        raise self._asks(
            f"the columns {some(names, 3)} could be datasets (--dataset columns), methods (--method columns "
            f"{option('dataset', self.method)}) or scores ({option('score', names[0])})",
            sure=any({*words_of(row)} & _OF_RIVALS and is_summary(row) for row in rows),
            **({"method": COLUMNS, "dataset": self.method} if methods else {"dataset": COLUMNS}),
        )

    def _melt(self, role: str) -> None:
        """Turn columns of numbers (or of `71.5 ± 0.4`) into rows: each is a method, or a dataset."""
        names = self._methods_in_columns()
        table, asked = self.table, option(role, COLUMNS)
        named = [name for name in table.columns if name.casefold() in _ROWS_ARE_METHODS and name != self.dataset]
        if role == "method" and (wrong := next((name for name in named if not is_number(table[name])), "")):
            raise ScoresError(
                f"{asked}: the rows are methods, by the column {wrong!r}; turn the table around, so that each "
                f"column of numbers is a method: in pandas, table.set_index({wrong!r}).T.rename_axis('seed')"
            )
        others = [name for name in self._numbers_in_columns() if name not in names]
        planned = [n for n in others if is_setting(n) or (not self._is_no_method(n) and _is_whole(table[n]))]
        others = [name for name in others if name not in planned or table[name].nunique() == 1]
        for name in set(table.columns) - {*names, *others, *self._claimed, ROW}:
            texts = numbers_of(table[name])["text"]
            if 0 < np.mean(texts) <= 0.5 and not is_number_of_runs(name):
                row = table.index[texts][0]
                raise ScoresError(
                    f"{asked}: row {row}: {plain(str(table.loc[row, name]))!r} in {name!r} is no number; leave the "
                    "row or the column out"
                )
        if len(names) < 2:
            raise ScoresError(
                f"{asked}: fewer than two columns of numbers are {role}s; scores, times, settings, deviations and "
                f"summaries are none: {some(list(table.columns))}"
            )
        if all(re.fullmatch(r"\d+", name) for name in names):
            raise ScoresError(
                f"the columns {some(names, 3)} are numbered, as repeats are; write the names of the {role}s, or one "
                "row for each repeat"
            )
        if sums := [name for name in others if is_summary(name)]:
            self.said.append(f"Left out: the columns {listed(sums)}, which sum up others.")
        self.why |= {name: f"no {role}" for name in others if not is_number_of_runs(name)}
        if role == "method" and not self.dataset and ROW in table.columns:
            table, self.dataset = table.rename(columns={ROW: "dataset"}), "dataset"
        self.melted = _metric_of(names) or "score"
        self.table = _stacked(table, names, role, names, self.melted)
        setattr(self, role, role)
        self.wide = role == "method"

    def _melt_repeats(self) -> None:
        """Turn columns such as `seed0`, `seed1`, or scikit-learn's `split0_test_score`, into rows."""
        found: dict[tuple[str, str], dict[str, str]] = {}
        for name in self._numbers_in_columns():
            if match := _REPEAT_IN_NAME.fullmatch(name.casefold()):
                role = "fold" if match[1] == "split" and match[3] else match[1]
                found.setdefault((role, match[3] or ""), {})[name] = match[2]
        several = [key for key, numbers in found.items() if len(numbers) > 1 and key[0] not in self.by_name]
        if not several or self.reading.score:
            return
        role, suffix = max(several, key=lambda key: "test" in key[1])  # Else the first.
        names = found[role, suffix]
        others = [name for name in self._numbers_in_columns() if name not in names]
        gone = [name for name in others if is_score(name) or is_summary(name) or is_time(name)]
        self.why |= dict.fromkeys(gone, "beside the single scores")
        self.melted = suffix.strip("_ .-") or "score"
        self.table = _stacked(self.table, list(names), role, list(names.values()), self.melted)

    # What the rows repeat

    def _find_repeats(self) -> None:
        """Find what tells repeats apart: folds, blocks, searches and runs. Folds stay folds whatever names them."""
        asked = self.reading
        self.search = self._search()
        self.block = self._named(asked.paired) if asked.paired else self._likely_block()
        self.fold = self._first("fold")
        given = self.run_in_name or (self._named(asked.run) if asked.run and asked.run != EACH_ROW else "")
        if self.block and is_role(self.block, "fold"):
            self.fold, self.block = self.block, ""
        if given and is_role(given, "fold"):
            self.fold, given = given, ""
        self.fold = "" if self.fold in (self.method, self.dataset, self.search) else self.fold
        self.dataset = "" if self.dataset == self.block else self.dataset
        self.search = "" if self.search == self.block else self.search
        taken = {self.method, self.dataset, self.search, self.block, self.fold, *self.why, *self._parts}
        there = [given] if given else [name for name in self._of_role("run") if name not in taken]
        for name in filter(None, (self.fold, *there)):
            if texts_of(self.table[name]).str.contains(r"\d").any():  # Not where words name the repeats.
                self._leave_summaries_out(name, of_columns=True)
        there = [name for name in there if texts_of(self.table[name]).nunique() > 1 or len(there) == 1]
        if asked.run == EACH_ROW:
            self.why |= dict.fromkeys(there, "every row is a run")
        elif self.fold:
            there, self.block = [*filter(None, [self.block]), *there], ""
            self._find_repeats_of_folds(there)
        elif given:
            self.runs = (given,)
        else:
            self._find_runs(there)

    def _search(self) -> str:
        found = self._first("search", self.reading.search)
        sweep = self.by_name.get(SWEEP, "")
        if sweep and not found and (texts_of(self.table[sweep]) != "").all():
            rows = self.table.groupby([texts_of(self.table[sweep]), texts_of(self.table[self.method])]).size()
            return sweep if self.reading.best_of or rows.max() == 1 else ""
        return "" if found == self.method else found

    def _likely_block(self) -> str:
        column = self._first("paired")
        if not column or column in (self.method, self.dataset, *self.why):
            return ""
        cells = sorted({*texts_of(self.table[column]).str.casefold()} - {""})
        parts = {tuple(words_of(text)) for text in cells}  # Without numbers: test 1 and test 2 are of one part.
        if not all(PARTS_OF_DATA & {*words} for words in parts):
            return column
        if len(parts) > 1:
            value = next((text for text in cells if text.startswith("test")), cells[-1])
            raise self._asks(
                f"{column} names parts of the data; keep one of them: {option('where', f'{column}={value}')}",
                where=(*self.reading.where, (column, value)),
            )
        return column if len(cells) > 1 else ""

    def _tell_apart(self, *names: str) -> bool:
        """Whether columns tell the rows of a method on a dataset apart."""
        keys = pd.concat(self._keys(self.method, self.dataset, self.search, self.block, *names), axis=1)
        if self.metric:
            keys = keys.assign(metric=texts_of(self.table[self.metric]))
        whole = self.table.astype(str).duplicated() if keys.duplicated().any() else pd.Series(False, index=keys.index)
        return not keys[~whole].duplicated().any()

    def _find_repeats_of_folds(self, there: Sequence[str]) -> None:
        """Of repeated folds find what numbers the repeats. A seed that tells no two scores of a fold apart is none."""
        if self._tell_apart(self.fold):
            return
        telling = [name for name in there if self._tell_apart(self.fold, name)]
        methods = texts_of(self.table[self.method])
        for name in telling:
            sets = {frozenset(own) for _, own in numbered(self.table[name]).groupby(methods, sort=False)}
            if len(sets) == 1 and not self._follows_from(self.fold, name):
                self.runs = (name,)
                return
        if telling:
            self.said.append(f"The scores of a {self.fold} count as one, their mean: {telling[0]} numbers no repeats.")
            self.why[telling[0]] = f"numbers scores of a {self.fold}"
            self.chosen = True

    def _follows_from(self, name: str, *by: str) -> bool:
        """Whether a column has one value for each value of others."""
        cells, *keys = (numbered(self.table[one]) for one in (name, *by))
        return bool(cells.groupby(keys, sort=False).nunique().max() <= 1)

    def _find_runs(self, there: Sequence[str]) -> None:
        """Find what numbers runs: one column that does, else all of them."""
        if any("seed" in words_of(name) for name in there):  # What differs from row to row names rows and no runs.
            there = [
                name for name in there if "seed" in words_of(name) or texts_of(self.table[name]).duplicated().any()
            ]
        self.runs = tuple(there)
        if len(there) < 2:
            return
        if alone := next((name for name in there if self._tell_apart(name)), ""):
            self.runs = (alone,)
            return
        one, other = there[:2]
        keys = pd.concat(self._keys(self.method, one, other), axis=1, keys=["method", "one", "other"]).drop_duplicates()
        if min(keys.groupby(["method", by]).size().max() for by in ("one", "other")) > 1:
            raise self._asks(
                f"{one} and {other} both tell rows of a method apart; say which numbers independent runs "
                f"({option('run', one)} or {option('run', other)}) and what the other is (--search, --paired, or "
                f"{option('where', f'{other}={self.table[other].iloc[0]}')})",
                run=other,
                search=one,
            )

    # The score

    def _find_score(self) -> None:
        """Find the compared score, and further ones."""
        table, asked = self.table, plain(self.reading.score)
        if self.metric:
            names = list(dict.fromkeys(texts_of(table[self.metric])))
            self.score = self._asked_score(names, asked, names)
            self.others = tuple(name for name in names if name != self.score)
            return
        free = [name for name in table.columns if name not in {*self._claimed, ROW}]
        counts = {name: numbers_of(table[name]) for name in free if not pd.api.types.is_bool_dtype(table[name])}
        numbers = [n for n, own in counts.items() if own["value"].notna().any() and 2 * np.mean(own["text"]) <= 1]
        spreads = {spread_of(self.by_name, name)[0] for name in numbers} - {""}
        likely = self._likely_scores([name for name in numbers if name not in spreads])
        if not likely and not asked:
            # Such as 71,5 or 71.5 %: the first row is refused.
            words = [name for name in counts if not is_setting(name)]
            likely = [name for name in words if texts_of(table[name]).str.match(r"-?\d").mean() > 0.5][:1]
        if not likely and not asked:
            raise ScoresError(f"no column of numbers is a score; the columns are {some(list(table.columns))}")
        self.score = self._asked_score([self.melted] if self.melted in likely else likely, asked, list(counts))
        self.others = tuple(name for name in numbers if name != self.score and name not in spreads)
        self.why |= dict.fromkeys(spreads, "a deviation")

    def _likely_scores(self, numbers: Sequence[str]) -> list[str]:
        """The columns of numbers that are no settings and, where others are left, no counts and no times."""
        likely = [name for name in numbers if not is_setting(name) and not NOTES.fullmatch(name)]
        chooses = plain(self.reading.best_of).casefold()
        for is_none in (
            lambda name: words_of(name)[-1:] == ["id"],
            lambda name: is_number_of_runs(name) or is_size(name),
            lambda name: name.casefold() in ROLES["method"][0],
            lambda name: name.casefold() == chooses,
            is_time,
        ):
            likely = [name for name in likely if not is_none(name)] or likely
        return likely

    def _asked_score(self, likely: Sequence[str], asked: str, known: Sequence[str]) -> str:
        if asked:
            if same := [name for name in known if name.casefold() == asked.casefold()]:
                return same[0]
            raise ScoresError(f"there is no score {asked!r}; there are {some(list(likely or known))}")
        if one := [name for name in PREFERRED if name in likely] or (list(likely) if len(likely) == 1 else []):
            return one[0]
        named = [name for name in likely if is_score(name)]
        if all({*words_of(name)} & {"train", "training"} for name in named):
            named = named if len(named) == len(likely) else []  # Not the loss of training beside what one asks about.
        tested = [name for name in named if {*words_of(name)} & {"test", "testing", "eval", "evaluation"}]
        kept = tested or [name for name in named if not {*words_of(name)} & PARTS_OF_DATA] or named
        if kept:
            whole = [n for n in kept if not {*words_of(n)} & {"loss", "precision", "recall"} or re.search(r"\d", n)]
            return (whole or kept)[0]
        summed = [name for name in likely if spread_of(self.by_name, name)[0]]
        if len(summed) == 1:
            return summed[0]
        measured = [name for name in summed or likely if not self._is_shared(name)]
        measured.sort(key=lambda name: "normalized" not in words_of(name))  # Of several metrics comparable.
        raise self._asks(
            f"several columns could be the score; name one with --score: {some(list(likely))}",
            score=(measured or likely)[0],
        )

    def _is_shared(self, name: str) -> bool:
        """Whether all methods have the same cells of a column, as of what was planned."""
        return name in self.table and is_shared(texts_of(self.table[name]), texts_of(self.table[self.method]))

    def _find_summary(self) -> None:
        """Find what stands behind a mean, where each method has one row on a dataset."""
        spread, kind = spread_of(self.by_name, self._values)
        rows = pd.concat(self._keys(self.method, self.dataset), axis=1).loc[self._of_score().index]
        if not spread or rows.duplicated().any():
            return
        seeds = [name for name in self._of_role("run") if "seed" in words_of(name)]
        self.runs, self.search, self.block, self.fold = (), "", "", ""
        self.spread = spread
        self.spread_kind = self.reading.plus_minus if kind == "±" else "se" if kind == "se" else "sd"
        given = re.fullmatch(r"(\d+)?[ -]*(runs?|folds?)?", self.reading.n.casefold())
        if given is None or given[1] in ("0", "1"):
            raise ScoresError(f"--n {self.reading.n}: write the number of runs behind each mean, such as 5, or 5-folds")
        self.number = next((name for name in self.table.columns if is_number_of_runs(name)), "")
        if given[1]:
            self.number = "n" if self.number == "n" else f"n = {given[1]}"
            self.table = self.table.assign(**{self.number: int(given[1])})
        elif not self.number and self.dataset and self.table[self._independent()[0]].nunique() >= FEWEST_DATASETS:
            self.said.append(
                f"{spread} is not used: nothing says of how many runs. --n with their number answers for each "
                f"{self.dataset}."
            )
            self.why[spread], self.spread = "of an unknown number of runs", ""
            return
        elif seeds and not self.number:
            self.said.append(
                f"{spread} is not used: each row is of one {seeds[0]}, so it is no deviation of runs; --n takes it as "
                "one of so many."
            )
            self.why[spread], self.spread, self.runs = "of one run, such as over images", "", tuple(seeds[:1])
            return
        self._find_what_n_are(given[2] or "")
        lacking = texts_of(self.table[spread]) == ""
        if lacking.any() and not lacking.all():
            self.said.append(f"Left out: {rows_words(self.table.index[lacking])} (no {spread}).")
            self.table = self.table[~lacking]

    def _find_what_n_are(self, said: str) -> None:
        """Find whether n are folds, whose deviations are none of runs; ask where all have five or ten."""
        counts = {*numbers_of(self.table[self.number])["value"].dropna()} if self.number else {-1.0}
        named = self.number.casefold()
        said = said or ("folds" if "cv" in words_of(self.score) else "")
        said = said or ("runs" if "run" in named or "seed" in named or self.number.startswith("n = ") else "")
        said = said or ("folds" if "fold" in named else "")
        if not said and len(counts) == 1 and counts <= {5.0, 10.0}:
            raise self._asks(
                f"all means have {self.number} = {min(counts):g}: --n runs if these are runs, --n folds if they are "
                "folds of a cross-validation, which share training data",
                n="folds",
            )
        if said.startswith("fold") and len(counts) == 1:
            self.folds_behind = int(min(counts))

    def _of_score(self) -> pd.DataFrame:
        """The rows of the compared score."""
        return self.table[texts_of(self.table[self.metric]) == self.score] if self.metric else self.table

    def _names_of_metrics(self) -> str:
        """The column that names the metric of a row, where another one has its value; empty if there is none."""
        name = next((self.by_name[name] for name in _METRICS if name in self.by_name), "")
        if not name or is_number(self.table[name]) or not any(value in self.by_name for value in _VALUES):
            return ""
        metrics = texts_of(self.table[name]).unique()
        return name if "value" in self.by_name or 2 * sum(map(is_score, metrics)) > len(metrics) else ""

    @property
    def _values(self) -> str:
        """The column of the compared score's numbers."""
        return next(self.by_name[name] for name in _VALUES if name in self.by_name) if self.metric else self.score

    # Rows that are taken

    def _take_rows(self) -> None:
        """Take the last row of each run (`--last`), or the best trial of each search (`--best-of`)."""
        for flag, given in (("--last", self.reading.last), ("--best-of", self.reading.best_of)):
            if not given:
                continue
            column, best = self._named(given), flag == "--best-of"
            if best and not self.search:
                raise ScoresError(f"--best-of {column}: name the column of the searches with --search")
            own = numbers_of(self.table[column])["value"]
            if own.isna().all():
                raise ScoresError(f"{flag} {column}: the column has no numbers")
            falls = best and self._falls(column)
            order = (-own if falls else own).fillna(-np.inf)
            groups = self._keys(self.method, self.dataset, *([self.search] if best else self._repeats), self.metric)
            self._check_taken(flag, column, own, order, groups)
            kept = self.table.loc[order.groupby(groups, sort=False).idxmax()].sort_index()
            said = f"The last {column} of each run is taken"
            if best:
                self.chosen, self.runs, self.block, self.fold = True, (), "", ""
                said = f"Of each {self.search} the trial with the {'lowest' if falls else 'highest'} {column} is taken"
                if column == self.score:
                    said += (
                        ", the compared score itself: such scores are too good, the more so the more trials there are"
                    )
            self.why.setdefault(column, "chose the rows")
            self.said.append(f"{said} ({len(kept):,} of {counted(len(self.table), 'row')}).")
            if best and len(tied := self._tied(order, groups)):
                self.said[-1] += f" {capitalized(rows_words(tied))} tie for it: the first of each {self.search} counts."
            self.table = kept

    def _check_taken(
        self, flag: str, column: str, own: pd.Series, order: pd.Series, groups: Sequence[pd.Series]
    ) -> None:
        lacking = own.isna().groupby(list(groups), sort=False).transform("all")
        if lacking.any():
            raise ScoresError(
                f"{flag} {column}: {rows_words(self.table.index[lacking])} have no number in it, nor has another "
                f"row of their {self.search if flag == '--best-of' else 'run'}; fill it in, or leave them out"
            )
        again = self._tied(order, groups)
        if flag == "--last" and len(again):
            raise ScoresError(
                f"{flag} {column}: {rows_words(again)} have the last one of their runs; keep one of what differs "
                "between them with --where, or name it with --run, --paired or --dataset"
            )

    def _tied(self, order: pd.Series, groups: Sequence[pd.Series]) -> pd.Index:
        last = self.table.index[order == order.groupby(list(groups), sort=False).transform("max")]
        again = pd.concat([group[last] for group in groups], axis=1).duplicated(keep=False)
        return again[again].index

    def _falls(self, column: str) -> bool:
        """Whether a lower value of a column is better."""
        if column == self.score and self.reading.lower_is_better is not None:
            return self.reading.lower_is_better
        return bool(means_lower(column))

    # What must hold before rows are compared

    def _check_columns(self) -> None:
        """Ask about columns that vary within a method and are neither repeats, nor scores, nor follow from them."""
        table = self._of_score()
        known = {*self._claimed, self.score, self._values, LOWER, SCALE}
        groups = [key.loc[table.index] for key in self._keys(self.method, self.dataset)]
        told, open_ones = self._tell_apart(self.fold, *self.runs) and bool(self._repeats), dict[str, pd.Series]()
        for name in (one for one in table.columns if one not in known):
            cells = numbered(table[name])
            varies = cells.groupby(groups, sort=False).nunique().max() > 1
            why = self._explained(name, cells, told=told) if varies else "one value for each method"
            why = ANOTHER_SCORE if why and name in self.others and is_score(name) else why
            if why or self.chosen:
                self.why[name] = why or "differs from row to row"
            else:
                open_ones[name] = cells
        if not open_ones:
            return
        if groups[0].nunique() == 1 and not any(map(self._is_planned, open_ones)):
            raise ScoresError(f"nothing to compare: all rows are of {groups[0].iloc[0]}; --method names another column")
        self._ask_what_varies(open_ones, groups)

    def _is_planned(self, name: str) -> bool:
        """Whether a column is a setting, or has words but yes and no: what one can plan, and not only measure."""
        words = {*texts_of(self.table[name]).str.casefold()}
        return is_setting(name) or not (is_number(self.table[name]) or words <= {"true", "false", "yes", "no", ""})

    def _ask_what_varies(self, cells: dict[str, pd.Series], groups: Sequence[pd.Series]) -> None:
        """Ask what columns are; one of words that all methods share has an answer for each of its values."""
        joined: list[str] = []
        asked, told = "", False
        for name, own in cells.items():
            varying = own.groupby(list(groups), sort=False).transform("nunique") > 1
            first = varying[varying].index[0]
            same = pd.concat([group == group[first] for group in groups], axis=1).all(axis=1)
            other = own[same & (own != own[first])]
            text = (
                f"{name} varies within {groups[0][first]} (rows {first} and {other.index[0]}: "
                f"{own[first] or 'empty'}, {other.iloc[0] or 'empty'}), so its rows are no repeats; "
            )
            remedy, likely = self._remedy(name, other.iloc[0])
            if "method" not in likely:
                known = bool(self.reading.method) or is_role(self.method, "method")
                sure = "dataset" in likely and known and not is_number(self.table[name])
                raise self._asks(text + remedy, sure=sure, **likely)
            keys = [*groups, *(cells[one] for one in joined)]
            if not told and own.groupby(keys, sort=False).nunique().max() > 1:
                joined.append(name)
                asked = asked or text + remedy
                told = bool(self._repeats) and self._tell_apart(self.fold, *self.runs, *joined)
        others = f". So {'do' if joined[2:] else 'does'} {listed(joined[1:])}" if joined[1:] else ""
        raise self._asks(
            f"{asked}{others}",
            sure=told and all(self._is_of_some(name, groups[0]) for name in joined),
            method="+".join([self.reading.method or self.method, *joined]),
        )

    def _is_of_some(self, name: str, methods: pd.Series) -> bool:
        """Whether a column is a setting that some methods do not have."""
        none = texts_of(self.table.loc[methods.index, name]).str.casefold().isin(MISSING)
        return none.nunique() == 2 and none.groupby(methods, sort=False).nunique().max() == 1

    def _explained(self, name: str, cells: pd.Series, *, told: bool) -> str:
        """Why a column that varies within methods needs no answer; empty if it does."""
        if NOTES.fullmatch(name) or cells[cells != ""].str.match(_DATE).all():
            return "a note"
        if is_role(name, "run") or (name.casefold() == SWEEP and (cells == "").any()):
            return "another number of the runs"
        setting = is_setting(name) or name.casefold() == SWEEP
        if (not setting or is_size(name)) and (by := self._follows(cells)):
            return f"follows from {by}"
        methods = texts_of(self.table.loc[cells.index, self.method])
        planned = is_shared(cells, methods)
        if not told and self._is_of_some(name, methods):
            planned = planned or 2 * cells.nunique() < len(cells)
        if setting:  # A run can stop at an epoch of its own.
            own = name.casefold() in COUNTERS or is_size(name)
            told = told or (own and self._ends_runs(name, cells))
            return "differs from run to run" if own and told and not planned else ""
        if name == ROW or name not in self.others:  # Names of runs and of files are all different.
            return "differs from row to row" if not cells.duplicated().any() or (told and not planned) else ""
        if is_score(name) or (is_time(name) and not planned):
            return ANOTHER_SCORE if is_score(name) else "a time"
        whole = not cells.str.contains(".", regex=False).any()
        if whole and not told and 2 * cells.nunique() < len(cells):
            return ""  # A size or a count, and nothing else says what the rows repeat.
        # A score has other values for other methods; what was planned has the same ones.
        return "" if planned else "another number"

    def _follows(self, cells: pd.Series) -> str:
        """What a column follows from, for all methods: the size of a fold, the data that a seed draws."""
        keys = [key.loc[cells.index] for key in self._keys(self.dataset, *self._repeats)]
        if not self._repeats:
            return ""
        groups = cells.groupby(keys, sort=False)
        shared = groups.size().max() > 1
        return " and ".join(self._repeats) if shared and groups.nunique().max() <= 1 else ""

    def _remedy(self, name: str, value: str) -> tuple[str, dict[str, object]]:
        """How to say what a column that varies is, and what it most likely is."""
        low, where = name.casefold(), option("where", f"{name}={value}")
        numbers = [one for one in self.others if {*words_of(one)} & {"val", "valid", "validation", "dev"}]
        chooses = next(iter(numbers), self.score)
        if low == SWEEP:
            return (
                f"--best-of VALIDATION takes the best trial of each {name} by that column; {option('search', name)}, "
                "if all rows of one are runs of what it found",
                {"search": name},
            )
        if self.search and is_setting(name):
            return (
                f"if they are trials, --best-of VALIDATION takes the best one of each {self.search} by that column",
                {"best_of": chooses},
            )
        if low in COUNTERS and is_number(self.table[name]):
            return (
                f"{option('last', name)} takes the last of each run, {where} one of them; {option('run', name)}, if "
                "it numbers the runs",
                {"last" if self._is_curve(name) else "run": name},
            )
        text = (
            f"{where} keeps one; --run, --paired, --dataset or {option('method', name)} says what it is; or leave the "
            "column out"
        )
        if words_of(name)[-1:] == ["id"] and self._is_shared(name) and not self._repeats:
            return text, {"paired": name}
        crosses = self._is_shared(name) and not (is_setting(name) and is_number(self.table[name]))
        if (self.wide or crosses) and self.reading.dataset != COLUMNS:
            return text, {"dataset": f"{self.reading.dataset or self.dataset}+{name}" if self.dataset else name}
        return text, {"method": name}

    def _is_curve(self, counter: str) -> bool:
        """Whether a counter is of epochs or steps, or scores rise or fall along it, and not from run to run."""
        return bool(re.search("epoch|step", counter.casefold())) or self._moves_with(counter)

    def _moves_with(self, counter: str) -> bool:
        """Whether scores rise or fall along a counter."""
        table = self._of_score()
        both = pd.concat([numbers_of(table[name])["value"] for name in (counter, self._values)], axis=1)
        ranks = both.groupby([key.loc[table.index] for key in self._keys(self.method, self.dataset)]).rank(pct=True)
        return bool(abs(ranks.corr().iloc[0, 1]) > 0.5)

    def _ends_runs(self, counter: str, cells: pd.Series) -> bool:
        """Whether a counter of epochs says where the run of each row stopped, and is not that of a curve.

        Within every method its steps are uneven and not in the order of the rows, and scores do not move along it.
        """
        if not re.search("epoch|step|iter", counter.casefold()) or not is_number(self.table[counter]):
            return False
        methods = texts_of(self.table.loc[cells.index, self.method])
        groups = [own.dropna() for _, own in pd.to_numeric(cells, errors="coerce").groupby(methods, sort=False)]
        uneven = all(len({*np.diff(np.unique(own))}) > 1 and not own.is_monotonic_increasing for own in groups)
        return uneven and not self._moves_with(counter)

    def _check_repeats(self) -> None:
        """Count rows that are there twice once, and ask about two rows of one run with other scores."""
        table = self._of_score()
        cells = pd.concat([texts_of(table[name]) for name in table.columns], axis=1)
        if not self._repeats and not self.chosen:
            self._count_copies_once(cells)
            return
        same = cells.duplicated()
        if same.any():
            self.said.append(f"There twice, and counted once: {rows_words(table.index[same])}.")
            self.table = self.table.drop(table.index[same])
        if (self.block and not self.runs) or (self.fold and self.chosen):
            return  # Several runs of a block are averaged.
        names = [name for name in (self.method, self.dataset, *self._repeats) if name]
        keys = pd.concat(self._keys(*names), axis=1, keys=names).reindex(table.index[~same])
        again = keys[keys.duplicated()]
        if again.empty or self.reading.run == EACH_ROW:
            return
        key = again.iloc[0]
        first = keys[(keys == key).all(axis=1)].index[0]
        roles = {self.method: "method", **dict.fromkeys(self.runs, "run")}
        where = ", ".join(f"{roles.get(name, name)} {key[name]}" for name in names if key[name])
        text = f"rows {first} and {again.index[0]} are both {where}"
        if "+" in self.reading.method:  # The columns that were named are all that methods differ in.
            self.said.append(f"{capitalized(text)}, as are {counted(len(again), 'further row')}: each counts as a run.")
            self.why |= dict.fromkeys(self.runs, "there more than once for a method")
            self.runs = ()
            return
        raise self._asks(
            f"{text}; number the runs apart, leave one out, or count each with --run {EACH_ROW}", run=EACH_ROW
        )

    def _count_copies_once(self, cells: pd.DataFrame) -> None:
        """Where every row is there as often, such as in a table that was appended to itself, count each once."""
        rows = cells.apply(tuple, axis=1)
        counts = Counter(rows)
        times = math.gcd(*counts.values())
        if times < 2 or len(counts) < 2:
            return
        first, *_ = rows[rows == rows.iloc[0]].index[1:]
        often = "twice" if times == 2 else f"{times} times"
        self.said.append(
            f"Every row is there {often}, such as rows {rows.index[0]} and {first}, as in a table that was appended to "
            "itself: a copy counts once."
        )
        self.table = self.table.drop(rows.index[rows.duplicated()])

    def _name_equal_rows(self, own: pd.DataFrame) -> None:
        """Name rows of one method whose scores are equal to the last of many digits, or in all of several scores."""
        if self.spread or self.metric or not self._repeats:
            return
        scores = [self.score, *(name for name in self.others if name in self.table and is_score(name))]
        table = self.table.loc[[*dict.fromkeys(own["at"])]]
        cells = pd.concat([texts_of(table[name]) for name in (self.method, self.dataset, *scores) if name], axis=1)
        digits = texts_of(table[self.score]).str.replace(r"\D", "", regex=True).str.strip("0").str.len()
        again = cells.duplicated(keep=False) & (digits >= 4)
        if again.any() and not again.all():
            rows = again[again].index
            self.said.append(
                f"{capitalized(rows_words(rows))} have the scores of another run of their method to the last digit."
            )

    # The frame

    def _places(self) -> pd.DataFrame:
        """Number, dataset, method, search, run and fold of every row, as texts."""
        table = self.table
        places = pd.DataFrame({"row": table.index, "at": table.index}, index=table.index)
        for role in ("experiment", "question", "planned", "dataset", "search"):
            places[role] = ""
        places["method"] = texts_of(table[self.method])
        check_filled(places, "method", self.method)
        for one, other in spelled_alike(places["method"]):
            rows = [places.index[places["method"] == name][0] for name in (one, other)]
            raise ScoresError(
                f"rows {rows[0]} and {rows[1]}: {one!r} and {other!r} differ in blanks, dashes or case only; write one"
            )
        if self.dataset:
            places["dataset"] = self._merged_datasets()
            check_filled(places, "dataset", self.dataset)
        if self.search:
            (places["search"],) = self._keys(self.search)
            check_filled(places, "search", self.search)
        places["fold"] = self._keys(self.fold)[0] if self.fold else ""
        runs = self._keys(self.block) if self.block else self._keys(*self.runs, self.fold)
        if runs:
            places["run"] = pd.concat(runs, axis=1).agg(" ".join, axis=1)
        else:
            keys = ["dataset", "method", "search"]
            if self.metric:
                keys.append("metric")
                places["metric"] = texts_of(table[self.metric])
            places["run"] = (places.groupby(keys).cumcount() + 1).astype(str)
        return places

    def _merged_datasets(self) -> pd.Series:
        """The dataset of each row: one for spellings that differ in little and hold no two numbers."""
        (raw,) = self._keys(self.dataset)
        keys = pd.concat(self._keys(self.method, *self._repeats, self.metric), axis=1).apply(tuple, axis=1)
        for first, other in spelled_alike(raw):
            both = f"{first!r} and {other!r}"
            if not self._repeats:
                raise ScoresError(
                    f"{self.dataset} {both} differ in blanks, dashes or case only; write one name, or two that differ "
                    "more"
                )
            if set(keys[raw == first]) & set(keys[raw == other]):
                self.said.append(
                    f"Two datasets, {both}, differ in blanks, dashes or case only: if they are one, write one name."
                )
            else:
                raw = raw.replace(other, first)
                self.said.append(f"{both} are taken as one dataset.")
        return raw

    def _without_copies(self, dataset: pd.Series, long: pd.DataFrame) -> pd.Series:
        """Which rows remain when a dataset that holds the numbers of another one is left out."""
        value = long[long["name"] == self.score].set_index("at")["value"]
        dataset = dataset.loc[value.index]
        kept, seen = pd.Series(True, index=self.table.index), dict[tuple[object, ...], str]()
        methods = texts_of(self.table.loc[dataset.index, self.method])
        for name, own in dataset.groupby(dataset, sort=False):
            numbers = value[own.index]
            held = tuple(sorted(zip(methods[own.index], numbers.fillna(-math.inf), strict=True)))
            if numbers.nunique() < 3:
                continue
            if held in seen:
                self.said.append(f"Left out: {name} holds the same numbers as {seen[held]}.")
                kept[own.index] = False
            seen.setdefault(held, str(name))
        return kept

    def _independent(self) -> list[str]:
        """The column that tells datasets apart, and the joined ones that cross it, such as the weather of an image.

        It is the one called dataset, else the one with most values.
        """
        parts = self.parts.get(self.dataset, [])
        free = [one for one in parts if not any(self._follows_from(one, by) for by in parts if by != one)]
        if len(free) < 2:
            return [self.dataset]
        order = {name: (not is_role(name, "dataset"), -self.table[name].nunique()) for name in free}
        return sorted(free, key=lambda name: order[name])

    def _without_dependent(self, long: pd.DataFrame, *, logs: bool) -> pd.DataFrame:
        """Return one score for each dataset: the mean over what crosses it, such as the weathers of an image."""
        unit, *others = self._independent()
        if not others:
            return long
        scored = long[long["value"].notna()]
        keys = [scored["name"], scored["dataset"]]
        complete = scored.groupby(keys)["method"].transform("nunique") == scored["method"].nunique()
        if not complete.any():
            raise ScoresError(
                f"no {listed([unit, *others])} is there for all methods; --where {others[0]}=VALUE keeps one of them"
            )
        lacking = sorted({*scored["dataset"]} - {*scored.loc[complete, "dataset"]})
        scored = scored[complete].assign(dataset=self._keys(unit)[0].reindex(scored.loc[complete, "at"]).to_numpy())
        groups = scored.groupby(["name", "dataset", "method"], sort=False)
        means = groups["value"].agg(lambda own: math.exp(np.log(own).mean()) if logs else own.mean())
        self.said.append(
            f"Each {unit} counts once, with the mean of its scores: another {' or '.join(others)} is no further "
            f"dataset.{f' Left out, since not all methods have them: {some(lacking, 3)}.' if lacking else ''}"
        )
        self.why |= dict.fromkeys(others, f"a mean over it is of each {unit}")
        self.dataset = unit
        return groups.first().assign(value=means).reset_index()

    def _long(self, places: pd.DataFrame) -> pd.DataFrame:
        """One row per run and score: the compared one, and further ones of the suite's names."""
        table = self.table
        places = places.drop(columns="metric", errors="ignore")
        if self.metric:
            long = places.assign(name=texts_of(table[self.metric]), given=table[self._values])
        else:
            # Scores of this suite stand beside it.
            known = [one for one in self.others if is_in_percent(split(one)[1]) and split(one)[1] in _OF_SUITE]
            long = pd.concat([places.assign(name=name, given=table[name]) for name in (self.score, *known)])
        long = long.assign(**numbers_of(long["given"]))
        if self.spread:
            spread = numbers_of(table[self.spread])["value"]
            number = numbers_of(table[self.number])["value"] if self.number else pd.Series(0.0, spread.index)
            scored = numbers_of(table[self._values])["value"].notna()
            bad = (spread.isna() | (spread < 0) | (~(number >= 1) & bool(self.number)))[scored]
            if bad.any():
                counts = f" and {self.number!r} (1 or more) as numbers" if self.number else " as a number"
                raise ScoresError(f"row {bad[bad].index[0]}: give {self.spread!r} (0 or more){counts}")
            spread = spread * number**0.5 if self.spread_kind == "se" and self.number else spread
            long = long.assign(deviation=spread.reindex(long["at"]).to_numpy(), n=number.reindex(long["at"]).to_numpy())
        return long.reset_index(drop=True)

    # Direction and scale

    def _declared(self, name: str) -> str:
        """What a record of Every Eval Ever says of the compared score; empty without one."""
        if name not in self.by_name:
            return ""
        said = [text.casefold() for text in texts_of(self._of_score()[name]).unique() if text]
        if len(said) > 1:
            what = f"{name.removeprefix('reproduce_')}: {said[0]} in one row and {said[1]} in another"
            raise ScoresError(f"{what} of {self.score}; compare one kind")
        return said[0] if said else ""

    @property
    def _kind(self) -> str:
        """The name of the score; of one such as `test_error` the metric that a column beside it says, if it is one."""
        if {*words_of(self.score)} <= {"score", "value", "result", "error", "performance", "metric", *PARTS_OF_DATA}:
            for name in self.table.columns:
                if "metric" in words_of(name) and name != self.score:
                    said = texts_of(self.table[name]).unique()
                    return said[0] if len(said) == 1 and is_score(said[0]) else self.score
        return self.score

    def _direction(self) -> bool:
        """Whether a lower score is better, by its name where that is sure."""
        if self.reading.lower_is_better is not None:
            return self.reading.lower_is_better
        if said := self._declared(LOWER):
            return said in ("true", "1", "yes")
        if (lower := means_lower(self._kind)) is None:
            raise self._asks(
                f"{self.score} may be better when lower; add --lower-is-better, or --higher-is-better",
                lower_is_better=True,
            )
        return lower

    def _scaled(self, long: pd.DataFrame, *, lower: bool) -> tuple[pd.DataFrame, ScoreScale]:
        """The rows with a score, percentages as fractions of 1, and the scale of the asked score."""
        parts, of_asked = [], None
        for name, own in long.groupby("name", sort=False):
            own = own[own["value"].notna()]
            scale: ScoreScale = "fractions" if own["value"].between(0, 1).all() else "percent"
            if name == self.score:
                if own.empty:
                    raise ScoresError(f"no row has a number in {name!r}")
                scale = of_asked = self._scale(own, lower=lower)
            elif own.empty or not own["value"].between(0, 100).all():
                continue
            factor = 100 if scale == "percent" else 1
            changes = {key: own[key] / factor for key in ("value", "deviation") if key in own}
            parts.append(own.assign(**changes))
        assert of_asked is not None
        return pd.concat(parts, ignore_index=True), of_asked

    def _scale(self, own: pd.DataFrame, *, lower: bool) -> ScoreScale:
        """The scale that all methods have on all datasets."""
        name, kind, values = self.score, self._kind, own["value"]
        declared = next((one for one in get_args(ScoreScale) if one == self._declared(SCALE)), None)
        given = self.reading.scale or declared
        if len(infinite := own[np.isinf(values)]):
            bad = infinite.iloc[0]
            raise ScoresError(
                f"row {bad.row}: {bad.value} in {name!r} is no score; write the number, or leave it empty"
            )
        if given is None and means_lower(kind) is not False and not is_error_rate(kind):
            given = "points"
        if given is None and 1 < values.max() <= _JUST_ABOVE and values.min() >= 0 and values.median() > 0.5:
            given = "points"  # A hypervolume of 1.02 is no percentage.
        if given is not None or not values.between(0, 100).all():
            return self._within(own, given)
        known = own[values != 0] if (values != 0).any() else own  # 0 is 0 in every scale.
        low = known["value"].between(0, 1).groupby([known["dataset"], known["method"]], sort=False).all()
        if low.all():
            if lower:
                self.said.append(
                    f"{name} is compared as it is written; --scale fractions, or percent, if that is what its values "
                    "within 0 and 1 are."
                )
            return "points" if lower else "fractions"
        if low.any():
            (one, other) = (low[low == of].index[0] for of in (True, False))
            rows = [known[(known["dataset"] == d) & (known["method"] == m)].iloc[0] for d, m in (one, other)]
            text = (
                f"rows {rows[0]['row']} and {rows[1]['row']}: {name!r} has {rows[0]['value']:g} of {_of(one)} and "
                f"{rows[1]['value']:g} of {_of(other)}, fractions beside percent; write all in one scale, or say with "
                "--scale what all are"
            )
            raise self._asks(text, scale="points") if lower else ScoresError(text)
        _refuse_mixed_rows(own, name)
        return "percent"

    def _within(self, own: pd.DataFrame, given: ScoreScale | None) -> ScoreScale:
        """The given scale, or points for scores beyond percentages; an accuracy of 101 is refused."""
        if given == "times":
            return self._ratios(own)
        high = 1 if given == "fractions" else 100
        outside = own[~own["value"].between(0, high)]
        if given == "points" or outside.empty:
            return given or "points"
        named, several = words_of(self.score), len(outside) > 1
        beyond = (own["value"] < 0).any() or (own["value"] > high).mean() > 0.5
        if given is None and not is_bounded(self.score) and ({*named} & _UNBOUNDED or beyond):
            return "points"
        remedy = "; if the scores are no percentages, add --scale points"
        if given:
            remedy = "; write fractions of 1" if given == "fractions" else ""
        row, value = outside.iloc[0]["row"], outside.iloc[0]["value"]
        text = f"row {row}: {value:g} in {self.score!r} is not within 0 and {high:g}{remedy}"
        if given is None and not is_bounded(self.score) and several:
            raise self._asks(text, scale="points")
        raise ScoresError(text)

    def _ratios(self, own: pd.DataFrame) -> ScoreScale:
        """Ratios, which positive scores have, one by one."""
        if self.spread:
            raise ScoresError(
                "a mean ± deviation has no ratio of single scores; give the runs, or leave out --scale times"
            )
        low = own[own["value"] <= 0]
        if len(low):
            one = low.iloc[0]
            raise ScoresError(f"row {one['row']}: {one['value']:g} in {self.score!r} has no ratio; use --scale points")
        return "times"

    def _what_repeats(self, own: pd.DataFrame) -> tuple[Repeats, str]:
        if self.spread:
            return "summary" if self.number else "uncounted summary", self.spread
        if self.block:
            return "block", self.block
        if self.search:
            return "search", self.search
        if self.fold:
            return "fold", self.fold
        if own["dataset"].nunique() > 1 and not own.duplicated(["dataset", "method"]).any():
            return "dataset", self.dataset
        return "run", " and ".join(self.runs)


_ROWS_ARE_METHODS = ("method", "method_name", "loss", "loss_name", "algorithm", "classifier")
"""Names of columns beside which no other column is a method. Other names can name datasets in wide tables."""

_OF_RIVALS = {"rank", "ranks", "wins", "win", "ties"}
"""Rows with these names sum up columns that were compared."""

_REPEAT_IN_NAME = re.compile(r"(seed|run|rep|fold|split|trial)[ _-]?(\d+)([ _.-].*)?")
_RUN_IN_NAME = re.compile(r"(?i)^(?P<method>.*?)[\s_/.:(\[-]+(?P<word>seed|run|rep|trial|s)[ _-]?(?P<run>\d+)\W*$")
_METRICS, _VALUES = ("metric", "metric_name", "measure"), ("value", "metric_value", "score", "result")
_DATE = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"
_OF_SUITE = ("precision_at_1", "r_precision", "map_at_r")
_JUST_ABOVE = 2.0
_UNBOUNDED = {
    *("reward", "return", "elo", "psnr", "mcc", "kappa", "rsq", "corr", "pearson", "spearman", "hypervolume", "hv"),
    *("ari",),
}


def _stacked(
    table: pd.DataFrame, names: Sequence[str], role: str, values: Sequence[str], score: str = "score"
) -> pd.DataFrame:
    """A table with a row for each of some columns: a column of the role has their values, another their scores."""
    spreads = {name: f"{name} ±" for name in names if f"{name} ±" in table.columns}
    kept = table.drop(columns=[*names, *spreads.values()])
    parts = []
    for name, value in zip(names, values, strict=True):
        scores = {score: table[name], **({f"{score} ±": table[spreads[name]]} if name in spreads else {})}
        rows = [f"{row} ({name})" for row in table.index]
        parts.append(kept.assign(**{role: value}, **scores).set_axis(rows))
    return pd.concat(parts)


def _is_whole(column: pd.Series) -> bool:
    """Whether all numbers of a column are written without a point."""
    return not texts_of(column).str.contains(".", regex=False).any()


def _metric_of(names: Sequence[str]) -> str:
    """The one metric that names of columns begin or end with; empty for several, or none."""
    metrics = {metric_in(name) for name in names}
    return metrics.pop() if len(metrics) == 1 else ""


def _of(key: tuple[str, str]) -> str:
    return f"{key[1]} on {key[0]}" if key[0] else key[1]


def _refuse_mixed_rows(own: pd.DataFrame, name: str) -> None:
    """Refuse a fraction among percentages of a method: a hundred times it lies among the others."""
    fractions = own.loc[own["value"] <= 1, ["dataset", "method"]].drop_duplicates()
    for _, rows in own.merge(fractions).groupby(["dataset", "method"], sort=False):
        low = rows[rows["value"] <= 1]
        high = rows.loc[rows["value"] > 1, "value"]
        among = low[(100 * low["value"]).between(0.8 * high.min(), 1.2 * high.max())]
        if len(among):
            row = among.iloc[0]
            raise ScoresError(
                f"row {row['row']}: {row['value']:g} in {name!r} stands among {high.min():g} to {high.max():g}, a "
                "fraction beside percent; write all in one scale, or add --scale percent"
            )
