"""A GPU for tests on a machine without one: device `cuda`, whose tensors are in the host's memory.

A pretended tensor is on torch's device `meta` for torch's C++ code, whose autograd can then run without CUDA. Python
code sees `cuda`. The mode `PretendedDevice` counts the reads of values, for which the host would wait, and refuses
operations between tensors of the two devices, as a GPU does.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = "cuda"
_INSIDE = "meta"

# A tensor of the host may meet one of the device in these: copies, and Python numbers that torch wrapped.
COPIES = {"_to_copy", "copy_"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


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
            device=_INSIDE,
            requires_grad=False,
        )
        made.held = held
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device(DEVICE)

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    def __repr__(self) -> str:  # type: ignore[override]
        return f"PretendedTensor({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl


def held(value: Any) -> Any:
    """What a pretended tensor holds; everything else unchanged."""
    return value.held if isinstance(value, PretendedTensor) else value


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute on what the tensors hold; results are on the device that a GPU would put them on."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, PretendedTensor)]
    wrappers = {id(x.held): x for x in tensors}
    device, on_device = kwargs.get("device"), bool(tensors)
    if device is not None:
        on_device = torch.device(device).type == _INSIDE
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
        reads: how often the host has read values of the device.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        if any(isinstance(x, PretendedTensor) for x in tensors):
            to_host = name == "_to_copy" and kwargs.get("device") == torch.device("cpu")
            self.reads += to_host or name in ("_local_scalar_dense", "nonzero")
            if name not in COPIES:
                _refuse_mixed(name, args, tensors)
        return _computed(func, args, dict(kwargs))


def _refuse_mixed(name: str, args: Any, tensors: list[Tensor]) -> None:
    if name in INDEXED and isinstance(args[0], PretendedTensor):
        # Torch copies indices from the host to the device.
        tensors = [x for x in tensors if not any(x is index for index in args[1] or ())]
    # A number in the host's memory goes along with tensors of the device.
    host = [x for x in tensors if not isinstance(x, PretendedTensor) and x.ndim > 0]
    if host:
        raise MixedDevicesError(f"{name} got tensors of both devices, of shapes {[tuple(x.shape) for x in tensors]}")


class _Constructors(TorchFunctionMode):
    """Gives C++ its name of the device. `torch.tensor` and its like make no values there: the host makes and copies."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(_inside(device))
        if func is Tensor.__getitem__ and isinstance(args[1], list):
            indices = torch.tensor(args[1])  # A list of lists has one list for each dimension, as for any tensor.
            args = (args[0], tuple(indices) if indices.ndim > 1 else indices)
        if func == Tensor.data.__set__ and isinstance(args[0], PretendedTensor):  # type: ignore[attr-defined]
            args[0].held = args[1].held
            return None
        if func is Tensor.tolist and isinstance(args[0], PretendedTensor):
            return args[0].cpu().tolist()
        if func is Tensor.to:
            args = (args[0], *(_inside(x) for x in args[1:]))
        if "device" in kwargs:
            kwargs["device"] = _inside(kwargs["device"])
        return func(*args, **kwargs)


def _inside(value: Any) -> Any:
    is_name = isinstance(value, str | torch.device) and str(value).startswith(DEVICE)
    return torch.device(_INSIDE) if is_name else value


@contextmanager
def pretended_device() -> Iterator[PretendedDevice]:
    """Inside, `DEVICE` is a device to train on."""
    autocast = torch.autocast
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    mode = PretendedDevice()
    stand_ins: dict[str, Any] = {
        "make_graphed_callables": lambda function, *_, **__: function,
        "mem_get_info": lambda device: (2**36, 2**36),
        "get_device_name": lambda device: "pretended",
        "get_rng_state": lambda device: torch.get_rng_state(),
        "set_rng_state": lambda state, device: None,
    }
    try:
        with ExitStack() as stack:
            stack.enter_context(mock.patch.multiple(torch.cuda, **stand_ins))
            on_cpu = mock.patch("torch.autocast", lambda device, *args, **kwargs: autocast("cpu", *args, **kwargs))
            on_host = mock.patch.object(Tensor, "pin_memory", lambda tensor: tensor)
            for context in (on_cpu, on_host, _Constructors(), mode):
                stack.enter_context(context)
            yield mode
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
