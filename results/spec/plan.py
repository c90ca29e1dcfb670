"""The plan of an experiment: one row for each method, with all that its trainings, tables and page need to know of it.

It is made once, when the experiment is opened, and stored when it starts.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, JsonValue, model_serializer, model_validator

from results.spec.data_choice import samples_word
from results.spec.ends import ProbedEnd
from results.spec.experiment_spec import Experiment
from results.spec.method import BATCHES, LOSS_LR, Method
from results.spec.range import Range, within_budget
from results.spec.search_settings import SearchSettings
from results.values import Record
from results.wording import counted


class ExperimentData(Record):
    """The data that an experiment was started on.

    Attributes:
        samples: Number of images, or of rows of features.
        left_out: Phrases with number and names of images and classes that are no part of the data.
        equal_files: A phrase on images whose files are equal in several classes; None without any.
        queries: Number of test images that are searched for among the others, the gallery; None if all of them are.
        content: Hash of the files of the images, or of the rows, without names and labels; empty if it is not known.
    """

    fingerprint: str
    samples: int
    classes: int
    left_out: tuple[str, ...] = ()
    equal_files: str | None = None
    queries: int | None = None
    content: str = ""


class LeftOut(NamedTuple):
    """Why a row is not tested against the others: the sign of its note, and the note."""

    sign: str
    note: str


class Recipe(Record):
    """What decides how fair a comparison with a method is, beside the conditions that all methods share.

    Attributes:
        samples_per_class: Images of a class in a batch; 0 draws images at random.
        parameters: What the loss trains beside the network: `proxies`, vectors of the embedding's size for every class,
            or `others`; None for nothing.
        loss_lr: Learning rate of these parameters if it is not searched; None takes the network's.
        searched: The hyperparameters that are searched, by target.
        fixed: Values of the numbers among the arguments of the loss that are not searched.
        warmup_passes: Passes over the training images with a frozen trunk.
        warmup_steps: Steps with a frozen trunk, in place of the passes.
        falls: Whether the loss fell while random embeddings were trained with it before the run; None for losses of the
            suite and of pytorch-metric-learning.
    """

    samples_per_class: int
    parameters: Literal["proxies", "others"] | None = None
    loss_lr: float | None = None
    searched: tuple[str, ...] = ()
    fixed: dict[str, float] = Field(default={})
    warmup_passes: int = 0
    warmup_steps: int | None = None
    falls: bool | None = None

    @property
    def images_of_a_class(self) -> str:
        """Images of a class in a batch, in words."""
        return "searched" if BATCHES in self.searched else str(self.samples_per_class or "drawn at random")

    def words(self, ranges: Mapping[str, Range] | None = None) -> dict[str, str]:
        """Return the recipe as a row of a table, by the name of each column, with the range of the rate if known."""
        rate = "the network's" if self.loss_lr is None else f"{self.loss_lr:g}"
        if LOSS_LR in self.searched:
            known = (ranges or {}).get(LOSS_LR)
            rate = f"searched, {known.ends[0]:g} to {known.ends[1]:g}" if known and not known.choices else "searched"
        own = {"proxies": "proxies", "others": "parameters", None: "nothing"}[self.parameters]
        names = [target.removeprefix("loss.") for target in self.searched]
        passes = counted(self.warmup_passes, "pass")
        frozen = passes if self.warmup_steps is None else counted(self.warmup_steps, "step")
        return {
            "images of a class in a batch": self.images_of_a_class,
            "trained beside the network": own,
            "learning rate of these": rate if self.parameters else "-",
            "searched hyperparameters": f"{len(names)}: {', '.join(names)}" if names else "-",
            "fixed": ", ".join(f"{name} {value:g}" for name, value in self.fixed.items()) or "-",
            "warm-up": frozen if self.warmup_steps or self.warmup_passes else "-",
        }


class PlannedRow(Record):
    """One row of an experiment: a method with what is searched, what is given, and how often it is trained.

    The store keeps what tables need. Rows that were read from it have no method, and of their ranges only those of
    numbers.

    Attributes:
        key: Key of the row: that of a card or a variant.
        title: Title in tables.
        runs: Number of runs when the experiment is complete: reproductions of all searches.
        method: The method with a value for every hyperparameter.
        ranges: What is searched, by target; empty if nothing is.
        given: Hyperparameters, by target, that the experiment sets or takes from a publication. `method` has them too.
        kind: `searched`; `given` by the experiment or a publication; `default`, a row with the card's own settings;
            `computed`, whose runs would all be equal, since nothing is trained and the weights are given.
        trials: Number of trials of one search; 0 if nothing is searched.
        searches: How often the search is made, or as often as those of the others where nothing is searched.
        reproductions: Runs of the setting that one search found.
        enqueue: Settings that a search tries first.
        before: The row as it was before its ranges were widened, whose trials its searches begin with.
        default_of: The row whose card's own settings a `default` row has.
        transductive: Whether the method computes something from the test images before these are scored.
        printed: The scores that the method's source prints for the dataset, in percent, by metric.
        recipe: What decides a fair comparison; None without a loss, and in rows of default settings.
    """

    key: str
    title: str
    runs: int = 0
    method: Method | None = None
    ranges: dict[str, Range] = Field(default={})
    given: dict[str, JsonValue] = Field(default={})
    kind: Literal["searched", "given", "default", "computed"] = "given"
    trials: int = 0
    searches: int = 1
    reproductions: int = 0
    enqueue: tuple[dict[str, JsonValue], ...] = ()
    before: "PlannedRow | None" = None
    default_of: str | None = None
    transductive: bool = False
    printed: dict[str, float] = Field(default={})
    recipe: Recipe | None = None

    def with_budget(self, search: SearchSettings, reproductions: int, *, untrained_weights: bool = False) -> Self:
        """Return the row with the numbers of its trials, searches and runs.

        A row without a search in an experiment that searches gets as many runs as the others, from the same seeds,
        unless its runs are all equal.

        Args:
            search: The experiment's search.
            reproductions: Reproductions of each setting.
            untrained_weights: Whether the weights of the trunk are drawn at random, so that runs without a loss differ.
        """
        default = self.default_of is not None
        ranges, trials = within_budget(self.ranges, 0 if default else search.trials)
        kind: Literal["searched", "given", "default", "computed"] = "searched" if ranges else "given"
        if self.method is not None and self.method.loss is None and not untrained_weights and not ranges:
            kind, reproductions = "computed", min(1, reproductions)
        if default:
            kind = "default"
        repeated = kind == "searched" or (kind == "given" and search.trials > 0)
        numbers = {"trials": trials, "searches": search.searches if repeated else 1, "reproductions": reproductions}
        targets = ranges.keys()
        enqueue = tuple(setting for setting in self.enqueue if setting.keys() <= targets)
        runs = numbers["searches"] * reproductions
        return self.model_copy(update={"ranges": ranges, "kind": kind, "runs": runs, "enqueue": enqueue, **numbers})


class Plan(Record):
    """An experiment with its rows: all that its trainings and tables need to know of it.

    Attributes:
        experiment: The experiment. It is written without the folder of its images, which differs between machines.
        rows: The rows by key, in the order of the tables.
        data: The data that it was started on; None if it was never started.
        probed: The ends of ranges that were probed, in order.
        interim_looks: After how many searches or runs the results could be seen before more were asked for, as phrases
            such as `2 searches`.
    """

    experiment: Experiment
    rows: dict[str, PlannedRow]
    data: ExperimentData | None = None
    interim_looks: tuple[str, ...] = ()
    probed: tuple[ProbedEnd, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_stored(cls, values: Any) -> Any:
        """Read what the store and records keep: the parts of the rows side by side, by the keys of the rows."""
        if not isinstance(values, dict) or "methods" not in values:
            return values
        of_rows = {"runs", "ranges", "printed", "defaults", "recipes", "trials"}
        parts = {name: values.get(name) or {} for name in of_rows}
        rows = {
            key: {
                "key": key,
                "title": title,
                "runs": parts["runs"].get(key, 0),
                "ranges": parts["ranges"].get(key, {}),
                "trials": parts["trials"].get(key, 0),
                "default_of": parts["defaults"].get(key),
                "kind": "default" if key in parts["defaults"] else "searched" if key in parts["ranges"] else "given",
                "transductive": key in values.get("transductive", ()),
                "printed": parts["printed"].get(key, {}),
                "recipe": parts["recipes"].get(key),
            }
            for key, title in values["methods"].items()
        }
        rest = {key: value for key, value in values.items() if key not in of_rows | {"methods", "transductive"}}
        return {**rest, "rows": rows}

    @model_serializer
    def _as_stored(self) -> dict[str, Any]:
        numbers = {
            key: {
                target: one.model_dump(include={"scale", "low", "high", "least", "most"})
                for target, one in row.ranges.items()
                if one.scale != "choice"
            }
            for key, row in self.rows.items()
        }
        stored: dict[str, Any] = {
            "methods": self.titles,
            "runs": {key: row.runs for key, row in self.rows.items()},
            "experiment": self.experiment.without_folder(),
            "interim_looks": list(self.interim_looks),
            "data": None if self.data is None else self.data.model_dump(mode="json"),
            "ranges": {key: ranges for key, ranges in numbers.items() if ranges},
            "transductive": [key for key, row in self.rows.items() if row.transductive],
        }
        if_any = {
            "printed": {key: row.printed for key, row in self.rows.items() if row.printed},
            "defaults": self.defaults,
            "recipes": {key: row.recipe.model_dump(mode="json") for key, row in self.rows.items() if row.recipe},
            "probed": [one.model_dump(mode="json") for one in self.probed],
            # Where ends are probed, searches can get more trials than the file says.
            "trials": {key: row.trials for key, row in self.rows.items() if row.trials > self.trials},
        }
        return {**stored, **{name: part for name, part in if_any.items() if part}}

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the rows, by key."""
        return {key: row.title for key, row in self.rows.items()}

    @property
    def defaults(self) -> dict[str, str]:
        """The row that each row of default settings belongs to, by the latter's key."""
        return {key: row.default_of for key, row in self.rows.items() if row.default_of is not None}

    @property
    def title(self) -> str:
        """Title of the experiment's tables."""
        return self.experiment.title

    @property
    def trials(self) -> int:
        """Search trials per method; 0 if nothing is searched."""
        return self.experiment.search.trials

    @property
    def most_trials(self) -> int:
        """The same with the trials that searches got where ends of ranges were probed."""
        return max([self.trials, *(row.trials for row in self.rows.values())])

    def trials_of(self, method: str) -> int:
        """The most trials that a search of a method can have, with those that it got where ends were probed."""
        row = self.rows.get(method)
        return max(self.trials, row.trials if row else 0)

    @property
    def reproductions(self) -> int:
        """Re-trainings per method."""
        return self.experiment.reproductions

    @property
    def runs(self) -> int:
        """Number of runs of all rows when the experiment is complete."""
        return sum(row.runs for row in self.rows.values())

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.experiment.dataset.name

    def tested(self, samples: int) -> str:
        """Say what a test of so many images or rows consists of."""
        what, queries = samples_word(self.dataset), None if self.data is None else self.data.queries
        if queries is None:
            return f"{samples:,} {what}"
        return f"{counted(queries, 'query')} among {samples - queries:,} other {what}"

    @property
    def left_out(self) -> dict[str, LeftOut]:
        """The rows that are not tested against the others: other conditions, knowing the test images, defaults."""
        rows: dict[str, LeftOut] = {}
        comparable = self.experiment.comparable_rows()
        for row, changes in self.experiment.changes.items():
            if row not in comparable:
                conditions = ", ".join(f"{key} {'null' if value is None else value}" for key, value in changes.items())
                rows[row] = LeftOut("†", f"{conditions}. Not compared with rows under other conditions.")
        note = "Knows the test images. Not compared with rows that do not."
        rows |= {key: LeftOut("‡", note) for key, row in self.rows.items() if row.transductive}
        note = "The card's own settings, without a search. Compared with the method's searches only."
        return rows | dict.fromkeys(self.defaults, LeftOut("§", note))

    @property
    def compared(self) -> dict[str, str]:
        """Titles of the rows that are tested against each other, by key."""
        left_out = self.left_out
        return {key: title for key, title in self.titles.items() if key not in left_out}

    @property
    def constant(self) -> frozenset[str]:
        """Rows that have one run because every other would be equal: nothing in them depends on a seed."""
        others = self.reproductions * (self.experiment.search.searches if self.trials else 1)
        return frozenset(key for key, row in self.rows.items() if row.runs == 1 < others and row.default_of is None)

    def with_searches(self, searches: int) -> Self:
        """Return the plan with another number of searches of each row that is searched or repeated."""
        experiment = self.experiment.with_search(searches=searches)
        rows = {
            key: row.model_copy(update={"searches": searches, "runs": searches * row.reproductions})
            if row.kind == "searched" or (row.kind == "given" and self.trials)
            else row
            for key, row in self.rows.items()
        }
        return self.model_copy(update={"experiment": experiment, "rows": rows})
