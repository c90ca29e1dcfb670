"""A GPU for tests on a machine without one: device `cuda`, in one of two kinds.

A pretended tensor is on torch's device `meta` for torch's C++ code, whose autograd can then run without CUDA. Python
code sees `cuda`. What it holds decides the kind:

- Values: a tensor in the host's memory. Results can be compared with those of the CPU.
- Fake: a tensor of torch's `FakeTensorMode` on `cuda`, with shape, type and device, but without values. torch's own
  rules say on which device a result is and which devices may meet. The mode is torch's documented tool for that (its
  documentation has a page "Fake tensor"), although its module has a private name. Alone it carries no gradients here:
  torch built for CPUs aborts at the first gradient on `cuda`. Where the program reads a value, it gets an assumed one:
  every mask is true, every number is 1, every array that is copied to the host is 0.

The mode `PretendedDevice` counts where a GPU would make the host wait and which results are in float64, and refuses
operations between tensors of the two devices, as a GPU does.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = "cuda"
_INSIDE = "meta"

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
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


class MixedDevicesError(RuntimeError):
    """An operation got tensors of both devices."""


class PretendedTensor(Tensor):
    """A tensor that says it is on the pretended device; `held` has its values, or is torch's fake tensor."""

    held: Tensor
    known: Any = None
    """The value of a single number that the host has sent here, or that is assumed; None if nobody knows."""

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
        return _computed(func, args, kwargs or {}, None)

    __torch_function__ = torch._C._disabled_torch_function_impl


def held(value: Any) -> Any:
    """What a pretended tensor holds; everything else unchanged."""
    return value.held if isinstance(value, PretendedTensor) else value


def _computed(func: Any, args: Any, kwargs: dict[str, Any], fake: FakeTensorMode | None) -> Any:
    """Compute on what the tensors hold; results are on the device that a GPU would put them on."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, PretendedTensor)]
    wrappers = {id(x.held): x for x in tensors}
    device, on_device = kwargs.get("device"), bool(tensors)
    if fake is None and any(isinstance(x.held, FakeTensor) for x in tensors):
        fake = next(x.held.fake_mode for x in tensors if isinstance(x.held, FakeTensor))
    if device is not None:
        on_device = torch.device(device).type == _INSIDE
        there = DEVICE if on_device and fake else "cpu"
        kwargs = {**kwargs, "device": torch.device(there)}
    kwargs.pop("pin_memory", None)
    if fake is not None and (on_device or tensors):
        result = _without_values(func, *tree_map(held, (args, kwargs)), fake)
    else:
        result = func(*tree_map(held, args), **tree_map(held, kwargs))

    def on_its_device(value: Any) -> Any:
        if not isinstance(value, Tensor) or not (on_device or isinstance(value, FakeTensor)):
            return value
        return wrappers[id(value)] if id(value) in wrappers else PretendedTensor(value)

    return tree_map(on_its_device, result)


def _without_values(func: Any, args: Any, kwargs: dict[str, Any], fake: FakeTensorMode) -> Any:
    """The result of torch's fake tensors; an assumed one where it depends on values."""
    name = func.overloadpacket.__name__
    to_host = name == "_to_copy" and kwargs.get("device") == torch.device("cpu")
    if to_host or (name == "copy_" and not isinstance(args[0], FakeTensor)):
        target = args[0] if name == "copy_" else torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        return target.fill_(target.dtype == torch.bool)
    if name == "_local_scalar_dense":
        return torch.ones((), dtype=args[0].dtype).item()
    if name == "equal":
        return True

    def numbers(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        with fake:
            return torch.ops.aten.empty.memory_format(shape, dtype=dtype, device=torch.device(DEVICE))

    x = args[0] if args else None
    if name == "nonzero":
        return numbers(x.numel(), x.ndim)
    if name == "masked_select":
        return numbers(x.numel(), dtype=x.dtype)
    if name == "bincount":
        return numbers(max(x.numel(), kwargs.get("minlength", 0), *args[2:3]))
    if name == "_unique2":
        return numbers(x.numel(), dtype=x.dtype), numbers(*x.shape), numbers(x.numel())
    if name == "repeat_interleave" and kwargs.get("output_size") is None:
        return numbers(x.numel())
    if name in INDEXED:
        indices = []
        for index in args[1]:
            is_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
            indices += [numbers(index.numel())] * index.ndim if is_mask else [index]
        args = (x, indices, *args[2:])
    args, kwargs = tree_map(lambda v: _fake_of(v, fake), (args, kwargs))
    with fake:
        return func(*args, **kwargs)


def _fake_of(value: Any, fake: FakeTensorMode) -> Any:
    on_host = isinstance(value, Tensor) and not isinstance(value, FakeTensor)
    return fake.from_tensor(value.detach()) if on_host else value


class PretendedDevice(TorchDispatchMode):
    """Computes on the pretended device.

    Attributes:
        waits: how often the host would have waited for the device, by cause.
        float64: how many numbers in float64 each operation has made on the device at most, by operation.
        operations: how many operations have started work on the device; views do not.
    """

    def __init__(self, fake: FakeTensorMode | None = None, assumed_any: bool = True) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.float64: Counter[str] = Counter()
        self.operations = 0
        self._fake, self._any = fake, assumed_any

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        pretended = [isinstance(x, PretendedTensor) for x in tensors]
        if any(pretended) or name in COPIES:
            self._count(name, args, kwargs, any(pretended))
        if any(pretended) and name not in COPIES:
            _refuse_mixed(name, args, tensors)
        if name == "_local_scalar_dense" and any(pretended) and args[0].known is not None:
            return args[0].known
        result = _computed(func, args, dict(kwargs), self._fake)
        if isinstance(result, PretendedTensor) and self._fake:
            result.known = self._number(func, name, args)
        made = [x for x in tree_flatten(result)[0] if isinstance(x, PretendedTensor)]
        is_view = any(r.alias_info and not r.alias_info.is_write for r in func._schema.returns)
        self.operations += bool(made) and not is_view
        for x in made:
            if x.dtype == torch.float64:
                self.float64[name] = max(self.float64[name], x.numel())
        return result

    def _number(self, func: Any, name: str, args: Any) -> Any:
        if name in COPIES and type(args[-1]) in (Tensor, torch.nn.Parameter) and args[-1].numel() == 1:
            return args[-1].item()
        if name == "any":
            return self._any
        return args[0].known if name in ("detach", "alias", "view") and isinstance(args[0], PretendedTensor) else None

    def _count(self, name: str, args: Any, kwargs: dict[str, Any], on_device: bool) -> None:
        if name in WAITS or (name == "repeat_interleave" and kwargs.get("output_size") is None):
            self.waits[name] += 1
        elif name == "_to_copy" and kwargs.get("device") is not None and not kwargs.get("non_blocking"):
            to_device = torch.device(kwargs["device"]).type == _INSIDE
            self.waits["copy"] += to_device != isinstance(args[0], PretendedTensor)
        elif name == "copy_" and isinstance(args[0], PretendedTensor) != isinstance(args[1], PretendedTensor):
            blocking = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
            self.waits["copy"] += blocking and args[1].ndim > 0
        elif name in INDEXED:
            indices = [index for index in args[1] if index is not None]
            self.waits["index by a mask"] += any(held(index).dtype in (torch.bool, torch.uint8) for index in indices)
            self.waits["index from the host"] += on_device and any(
                not isinstance(index, PretendedTensor) for index in indices
            )


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
            args = (args[0], torch.tensor(args[1]))
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
def pretended_device(*, fake: bool = False, assumed_any: bool = True) -> Iterator[PretendedDevice]:
    """Inside, `DEVICE` is a device to train on; with `fake` it has no values, and `any()` is `assumed_any`."""
    autocast = torch.autocast
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    mode = PretendedDevice(FakeTensorMode() if fake else None, assumed_any)
    stream = SimpleNamespace(wait_stream=lambda other: None)
    stand_ins: dict[str, Any] = {
        "Stream": lambda device: stream,
        "stream": lambda stream: ExitStack(),
        "current_stream": lambda device: stream,
        "mem_get_info": lambda device: (2**36, 2**36),
        "get_device_name": lambda device: "pretended",
        "get_rng_state": lambda device: torch.get_rng_state(),
        "set_rng_state": lambda state, device: None,
    }
    try:
        with ExitStack() as stack:
            stack.enter_context(mock.patch.multiple(torch.cuda, **stand_ins))
            on_cpu = mock.patch("torch.autocast", lambda device, *args, **kwargs: autocast("cpu", *args, **kwargs))
            # Also in the threads that make batches, which have no modes.
            on_one_stream = {"pin_memory": lambda tensor: tensor, "record_stream": lambda tensor, stream: None}
            methods = mock.patch.multiple(Tensor, **on_one_stream)
            for context in (on_cpu, methods, _Constructors(), mode):
                stack.enter_context(context)
            yield mode
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
