"""Says before the first training how long a run will take, and asks on a terminal if that is more than an hour."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from reproduce.commands.terminal import say
from reproduce.monitoring.time_left import in_words

if TYPE_CHECKING:
    from reproduce.execution.session import Session

LONG_SECONDS = 3600.0
"""A run that is expected to take longer asks first."""

_SHORTER = "Shorter: fewer --methods, --trials or --reproductions"
_SHORTER_ON_IMAGES = ", or --frozen; the experiment folder_small is made for your own images on a laptop"


def ask_before_run(session: Session, device: str, workers: int, *, yes: bool, console: Console) -> None:
    """Say the forecast of the trainings to do, as `plan` estimates them. Nothing is said if all are in the store.

    Args:
        session: The opened experiment.
        device: cpu, cuda or cuda:N.
        workers: How many trainings run at the same time.
        yes: Whether to start without a question.
        console: Where the forecast is printed.

    Raises:
        typer.Exit: The user does not want to start.
    """
    from reproduce.execution import plan_trainings
    from reproduce.execution.rates import REMEDY, expected_rates, training_rows_word
    from reproduce.storage import existing_store
    from reproduce.store_care.damaged_studies import whole_studies

    store = existing_store(session.paths)
    studies = whole_studies(session.paths) if store else None
    # All timings of a large store take seconds to read, so they are read only if something is left to do.
    to_do = sum(method.to_do for method in plan_trainings.plan(session, store, studies, []))
    if not to_do:
        return
    timings = store.timings() if store else []
    plans = plan_trainings.plan(session, store, studies, timings)
    rates = expected_rates(session.problem, timings, device)
    known = None if isinstance(rates, str) else rates
    each = [method.seconds_to_do(known) for method in plans]
    durations = [seconds for seconds in each if seconds is not None]
    if len(durations) < len(each):
        say(console, f"{to_do} trainings to do; how long they take is not known ({rates}); ask `plan`, and {REMEDY}")
        return
    least, typical, most = (sum(parts) / workers for parts in zip(*durations, strict=True))
    each_second = (
        "" if isinstance(rates, str) else f"{rates.training:,.0f} {training_rows_word(session.problem)} a second"
    )
    source = "" if isinstance(rates, str) else f"; {each_second}, {rates.source}"
    if known is not None and any(method.has_own_rates(known) for method in plans):
        source += "; a method with trainings in the store has their rate"
    say(
        console,
        f"{to_do} trainings to do, forecast: about {in_words(typical)} ({in_words(least)} to {in_words(most)}{source})",
    )
    if typical > LONG_SECONDS and not yes:
        say(console, _SHORTER + ("." if session.problem.trunk.is_input_features else f"{_SHORTER_ON_IMAGES}."))
        if console.is_terminal and sys.stdin.isatty() and not typer.confirm("Start?"):
            say(console, "not started")
            raise typer.Exit(1)
