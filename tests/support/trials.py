"""Trials of a search, for the tests of its figures."""

from reports.figures.trials import Parameter, TrialPoint

RATE, COUNT = Parameter("loss.lr", "log"), Parameter("loss.count", "int")


def trial(number, value, rate=0.01, count=4):
    return TrialPoint(number, {"loss.lr": rate, "loss.count": count}, value)


TRIALS = [
    trial(2, 0.3, 1.0, 2),
    trial(0, 0.2, 0.0001, 8),
    trial(1, None),
    trial(3, 0.25, 0.01, 4),
    trial(4, 0.4, 0.1, 6),
]


def line(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)
