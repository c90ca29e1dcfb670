"""Values that were read off the figures of the papers, with the certainty that the reading has."""

from dataclasses import dataclass

from results.published.tables import read_published


@dataclass(frozen=True)
class FigureValue:
    """One value of a published figure.

    Attributes:
        dataset: Key of the dataset.
        series: Line of the figure: the key of a method, or the value of the line's hyperparameter; empty for a figure
            with one line.
        x: Position on the horizontal axis: an epoch or the value of a hyperparameter.
        score: The score as a fraction of 1.
        certainty: How the value is known, such as `read off, +-0.1`.
        source: Where it was read.
    """

    dataset: str
    series: str
    x: float
    score: float
    certainty: str
    source: str


def figure_values(figure: str) -> tuple[FigureValue, ...]:
    """Return the known values of a published figure, in the order of the file.

    A figure without known values, or an unknown one, gives none.
    """
    lines = read_published("figure_values")
    return tuple(
        FigureValue(
            dataset=line["dataset"],
            series=line["series"],
            x=float(line["x"]),
            score=float(line["value"]) / 100,
            certainty=line["certainty"],
            source=line["source"],
        )
        for line in lines[lines["figure"] == figure].to_dict("records")
    )
