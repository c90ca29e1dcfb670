"""What torch does for a training: precision, random numbers, deterministic kernels, chunks, and where it ran."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import protocols.machine.square_roots  # noqa: F401 - replaces torch's
from protocols.machine.kernels import kernels
from results.records.provenance import CUDA_GRAPHS, Provenance, provenance
from results.spec.conditions import Precision

_TF32: dict[Precision, tuple[bool, bool]] = {"float32": (False, True), "ieee": (False, False), "amp": (True, True)}
"""Whether products and whether convolutions take TF32."""

# torch's type hints do not know these settings. Those per operation came with torch 2.9.
_PRODUCTS: Any = torch.backends.cuda.matmul
_CUDNN: Any = torch.backends.cudnn
_PER_OPERATION = hasattr(_CUDNN, "conv")


def use_precision(precision: Precision) -> None:
    """Set for this process how a GPU computes products and convolutions of float32 numbers.

    `float32` is torch's own default, which takes TF32 in convolutions and not in products. `ieee` takes it nowhere,
    `amp` in both: there it concerns the loss and whatever else is not in bfloat16. A CPU computes float32 in all three.
    """
    products, convolutions = _TF32[precision]
    # The older names are set first, everywhere: torch.export reads them, and fails where the newer ones disagree.
    _use_in_products(products)
    _CUDNN.allow_tf32 = convolutions
    if _PER_OPERATION:
        _CUDNN.conv.fp32_precision = _CUDNN.rnn.fp32_precision = _kind(convolutions)


def _use_in_products(tf32: bool) -> None:
    _PRODUCTS.allow_tf32 = tf32
    if _PER_OPERATION:
        _PRODUCTS.fp32_precision = _kind(tf32)


def _kind(tf32: bool) -> str:
    return "tf32" if tf32 else "ieee"


@contextmanager
def exact_products() -> Iterator[None]:
    """Take no TF32 in products inside. Scores need it: TF32 has three digits, and near images would change places."""
    before = _in_products()
    _use_in_products(False)
    try:
        yield
    finally:
        _use_in_products(before)


def _in_products() -> bool:
    return bool(_PRODUCTS.fp32_precision == "tf32" if _PER_OPERATION else _PRODUCTS.allow_tf32)


def _in_convolutions() -> bool:
    return bool(_CUDNN.conv.fp32_precision == "tf32" if _PER_OPERATION else _CUDNN.allow_tf32)


def torch_provenance(device: torch.device, *, graphs: bool = False) -> Provenance:
    """Describe the origin of a number that torch computed on a device, and that is finished now.

    `graphs` says whether a training's steps were replayed as CUDA graphs.

    The version of torch names its build. Numbers from a GPU also have CUDA, cuDNN, the driver and the settings that
    decide how it rounds.
    """
    versions, math = {"torch": str(torch.__version__)}, {}
    if device.type == "cuda":
        found = {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "driver": _driver()}
        versions |= {package: str(version) for package, version in found.items() if version}
        math = _math_settings() | ({CUDA_GRAPHS: "True"} if graphs else {})
    return provenance(device_name(device), torch.get_num_threads(), versions, math, kernels())


def _math_settings() -> dict[str, str]:
    settings = {
        "TF32 in products": _in_products(),
        "TF32 in convolutions": _in_convolutions(),
        "sums in bfloat16": torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        "deterministic kernels": torch.are_deterministic_algorithms_enabled(),
        "cuDNN's search for kernels": torch.backends.cudnn.benchmark,
    }
    variables = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE")
    return {key: str(value) for key, value in settings.items()} | {
        name: os.environ[name] for name in variables if name in os.environ
    }


@cache
def _driver() -> str | None:
    """Version of the GPU's driver; None if nvidia-smi does not say it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.partition("\n")[0].strip() or None


def device_name(device: torch.device) -> str:
    """`cpu`, or the model name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def seed_generators(seed: int) -> None:
    """Seed torch's generator, and those of Python and numpy, from which a loss of a user may draw."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global one is meant


@contextmanager
def isolated_random_numbers(device: str, *, fill_memory: bool = False) -> Iterator[None]:
    """Use deterministic kernels inside; restore torch's settings and all random numbers afterwards.

    `fill_memory` makes torch fill every new tensor with NaN, which shows kernels that leave a part of it unset.
    """
    devices = [torch.device(device)] if device.startswith("cuda") else []
    before = torch.get_deterministic_debug_mode()
    # torch's type hints do not know this setting.
    memory: Any = torch.utils.deterministic
    filled_before = memory.fill_uninitialized_memory
    pythons, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices):
        # Unlike `use_deterministic_algorithms`, this does not import torch's compiler, which takes 3 seconds.
        torch.set_deterministic_debug_mode("warn")
        memory.fill_uninitialized_memory = fill_memory
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(before)
            memory.fill_uninitialized_memory = filled_before
            random.setstate(pythons)
            np.random.set_state(numpys)  # noqa: NPY002


def embed_in_chunks(model: nn.Module, images: Tensor, size: int | None) -> Tensor:
    """Embed a batch, and keep of the network no more than the embeddings.

    This is the gradient cache of Gao et al. (Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup,
    RepL4NLP 2021), as torch's checkpoints compute it.

    The backward of a loss on the whole batch then computes one chunk after another a second time, with the random
    numbers of the first time, so that dropout falls on the same values. It needs the memory of one chunk. Gradients
    are those of one pass, up to rounding, if the network treats the images of a batch independently.

    Args:
        images: The batch (n, ...).
        size: Images of a chunk. None, or a size of at least n, embeds the batch in one pass.

    Returns:
        The embeddings (n, d).
    """
    if size is None or size >= len(images):
        embeddings: Tensor = model(images)
        return embeddings
    return torch.cat([checkpoint(model, chunk, use_reentrant=False) for chunk in images.split(size)])
