"""`bench`: measures how fast this machine is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from reproduce.commands.options import STORE, Device, StoreAt
from reproduce.commands.terminal import output_console

if TYPE_CHECKING:
    from reproduce.forecast.measure_machine import MachineRate


def bench(device: Device = "auto", store: StoreAt = STORE) -> None:
    """Measure how fast this machine trains, crops, retrieves and writes. This takes about two minutes.

    The measurements need no images, no weights and no store. `plan` turns a rate into the duration of an experiment.
    """
    from reproduce.execution.devices import check_device
    from reproduce.forecast.measure_machine import measure_machine
    from reproduce.storage import storage_paths

    console = output_console()
    torch_device = check_device(device)
    rates = []
    with console.status("measuring") as status:
        for rate in measure_machine(storage_paths(store, None, None, None), torch_device):
            rates.append(rate)
            status.update(f"measured: {rate.what}")
    show_rates(rates, torch_device, console)


def show_rates(rates: Sequence[MachineRate], device: str, console: Console) -> None:
    """Print the rates of a machine."""
    table = Table(title=f"this machine, device {device}")
    for name in ("what", "rate", "how it was measured"):
        table.add_column(name, justify="right" if name == "rate" else "left")
    for rate in rates:
        table.add_row(rate.what, rate.rate, rate.note)
    console.print(table)
    console.print("`reproduce plan NAME --rate IMAGES` plans an experiment with a rate of training.", highlight=False)
