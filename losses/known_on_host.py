"""Small state of a loss that the host knows without a wait for the device."""

from collections.abc import Callable
from typing import Any

from torch import Tensor


class KnownOnHost:
    """Values of buffers, as the host last read or wrote them.

    A buffer stays the truth: if anybody else changes or replaces it, it is read again. Copies and pickles of the loss
    begin without known values.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Tensor, int, Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "KnownOnHost":
        return KnownOnHost()

    def __reduce__(self) -> tuple[type["KnownOnHost"], tuple[()]]:
        return KnownOnHost, ()

    def read(self, name: str, buffer: Tensor, value_of: Callable[[Tensor], Tensor] | None = None) -> Any:
        """The value of a buffer; the host waits for the device only if the buffer has changed since the last call.

        Args:
            name: Name of the value.
            buffer: The buffer, with one element unless there is `value_of`.
            value_of: Computes the value, a tensor with one element, from the buffer; None takes the buffer itself.

        Returns:
            The value, a Python number or bool.
        """
        known = self._known.get(name)
        if known is not None and known[0] is buffer and known[1] == buffer._version:
            return known[2]
        return self._keep(name, buffer, (value_of(buffer) if value_of else buffer).item())

    def write(self, name: str, buffer: Tensor, value: Any) -> None:
        """Set a buffer to a value.

        Args:
            name: Name of the value.
            buffer: The buffer, with one element.
            value: The value; a buffer that is known to have it is not written.
        """
        known = self._known.get(name)
        if known is None or known[0] is not buffer or known[1] != buffer._version or known[2] != value:
            buffer.fill_(value)
            self._keep(name, buffer, value)

    def _keep(self, name: str, buffer: Tensor, value: Any) -> Any:
        self._known[name] = (buffer, buffer._version, value)
        return value
