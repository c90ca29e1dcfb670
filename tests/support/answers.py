"""Answers from values that are given by method."""

import pandas as pd

from results.answer.answer_question import answer
from results.answer.question import AskedMethod, Question


def asked(values, **question):
    """The answer about values by method: means of searches of this suite, or runs with another `unit`.

    A value can be a sequence of numbers or an `AskedMethod` with it, as `(planned, numbers)`.
    """
    if "margin" in question:
        question["margin"] *= 100  # The values are fractions of 1.
    by_search = question.get("unit", "search") == "search"
    rows, methods = [], {}
    for key, own in values.items():
        planned, numbers = own if isinstance(own[0] if len(own) else None, AskedMethod) else (None, own)
        count = len(numbers)
        methods[key] = planned or (AskedMethod(key, count, 1) if by_search else AskedMethod(key, 0, count))
        rows += [(key, place if by_search else 0, place, value) for place, value in enumerate(numbers)]
    frame = pd.DataFrame(rows, columns=["method", "search", "run", "value"]).assign(metric="map_at_r", embeddings="")
    return answer(frame, Question(methods=methods, **{"half_can_fail": True, **question}))


def constant(value):
    """A method of one run that stands for all."""
    return AskedMethod("constant", 0, 1, searched=False, constant=True), (value,)


def given(*values):
    """A method whose settings are given, with its runs."""
    return AskedMethod("given", 0, len(values), searched=False), values
