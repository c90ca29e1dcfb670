"""A second device for tests on a machine without a GPU.

Torch calls the pretended device `meta`, but its tensors hold real values in the host's memory. Everything that the code
under test asks of a device (`tensor.device`, `.to(device)`, `device=`) answers as on a GPU. The mode `PretendedDevice`
counts where a GPU would make the host wait, and refuses operations between tensors of the two devices, as a GPU does.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = "meta"

# The size of the result, or a check, depends on values: the host waits for them.
WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
    "equal",
    "multinomial",
}
# A tensor of the host may meet one of the device in these: copies, and Python numbers that torch wrapped.
COPIES = {"_to_copy", "copy_"}


class MixedDevicesError(RuntimeError):
    """An operation got tensors of both devices."""


class PretendedTensor(Tensor):
    """A tensor that says it is on the pretended device; `held` has its values."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "PretendedTensor":
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=False,
        )
        made.held = held
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"PretendedTensor({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl


def held(value: Any) -> Any:
    """The values of a pretended tensor; everything else unchanged."""
    return value.held if isinstance(value, PretendedTensor) else value


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute on the held values; results are on the device that a GPU would put them on."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, PretendedTensor)]
    wrappers = {id(x.held): x for x in tensors}
    device, on_device = kwargs.get("device"), bool(tensors)
    if device is not None:
        on_device = torch.device(device).type == DEVICE
        kwargs = {**kwargs, "device": torch.device("cpu")}
    kwargs.pop("pin_memory", None)
    result = func(*tree_map(held, args), **tree_map(held, kwargs))

    def on_its_device(value: Any) -> Any:
        if not isinstance(value, Tensor) or not on_device:
            return value
        return wrappers[id(value)] if id(value) in wrappers else PretendedTensor(value)

    return tree_map(on_its_device, result)


class PretendedDevice(TorchDispatchMode):
    """Computes on the pretended device.

    Attributes:
        waits: how often the host would have waited for the device, by cause.
        mixed: whether operations between the devices are refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        pretended = [isinstance(x, PretendedTensor) for x in tensors]
        if any(pretended) or name in COPIES:
            self._count(name, args, kwargs, any(pretended))
        if any(pretended) and name not in COPIES:
            _refuse_mixed(name, args, tensors)
        return _computed(func, args, dict(kwargs))

    def _count(self, name: str, args: Any, kwargs: dict[str, Any], on_device: bool) -> None:
        if name in WAITS or (name == "repeat_interleave" and kwargs.get("output_size") is None):
            self.waits[name] += 1
        elif name == "_to_copy" and kwargs.get("device") is not None and not kwargs.get("non_blocking"):
            to_device = torch.device(kwargs["device"]).type == DEVICE
            self.waits["copy"] += to_device != isinstance(args[0], PretendedTensor)
        elif name == "copy_" and isinstance(args[0], PretendedTensor) != isinstance(args[1], PretendedTensor):
            blocking = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
            self.waits["copy"] += blocking and args[1].ndim > 0
        elif name in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"):
            indices = [index for index in args[1] if index is not None]
            self.waits["index by a mask"] += any(held(index).dtype in (torch.bool, torch.uint8) for index in indices)
            self.waits["index from the host"] += on_device and any(
                not isinstance(index, PretendedTensor) for index in indices
            )


def _refuse_mixed(name: str, args: Any, tensors: list[Tensor]) -> None:
    if name.startswith(("index", "_index")) and isinstance(args[0], PretendedTensor):
        # Torch copies indices from the host to the device.
        tensors = [x for x in tensors if not any(x is index for index in args[1] or ())]
    # A number in the host's memory goes along with tensors of the device.
    host = [x for x in tensors if not isinstance(x, PretendedTensor) and x.ndim > 0]
    if host:
        raise MixedDevicesError(f"{name} got tensors of both devices, of shapes {[tuple(x.shape) for x in tensors]}")


class _Constructors(TorchFunctionMode):
    """`torch.tensor` and its like make no values on torch's `meta`; here the host makes them and copies."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        if func is Tensor.__getitem__ and isinstance(args[1], list):
            args = (args[0], torch.tensor(args[1]))
        if func is Tensor.tolist and isinstance(args[0], PretendedTensor):
            return args[0].cpu().tolist()
        return func(*args, **kwargs)


@contextmanager
def pretended_device() -> Iterator[PretendedDevice]:
    """Inside, `DEVICE` is a device to train on."""
    autocast = torch.autocast
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    mode = PretendedDevice()
    try:
        on_cpu = mock.patch("torch.autocast", lambda device, *args, **kwargs: autocast("cpu", *args, **kwargs))
        with on_cpu, _Constructors(), mode:
            yield mode
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
