"""Record the network's kernels as a CUDA graph, so that the host starts a step's kernels with a few calls.

A graph runs the kernels that it was recorded from, on the same numbers. It is a way to execute a training, not a part
of its specification. Nothing here has run on CUDA yet.
"""

import warnings

import torch
from torch import Tensor

from protocols.trunks.embedding_model import EmbeddingModel


def record_graph(model: EmbeddingModel, images: Tensor) -> bool:
    """Record forward and backward of a model in training mode; from then on calls with such a batch replay the graph.

    The parameters that need a gradient must not change afterwards. The state of the model and of the random generators
    does not change. If recording is not possible, the model stays as it is, and a warning of one line says why.

    Args:
        model: The model, in training mode.
        images: A batch like those of the training, uint8 (n, channels, height, width) on the model's device.

    Returns:
        Whether the model has a graph now.
    """
    if images.device.type != "cuda":
        warnings.warn(f"no CUDA graphs on {images.device.type}: the training goes on without them", stacklevel=2)
        return False
    # Recording runs the network a few times, which moves the running statistics of batch normalisation.
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        with torch.random.fork_rng([images.device]):
            torch.cuda.make_graphed_callables(model, (images.clone(),))
    except Exception as error:  # torch raises many kinds, by the operation that cannot be recorded
        # `make_graphed_callables` replaces `forward` of the instance; this brings back that of the class.
        vars(model).pop("forward", None)
        reason = str(error).partition("\n")[0]
        warnings.warn(f"no CUDA graph of {model.trunk.__class__.__name__}: {reason}", stacklevel=2)
        return False
    finally:
        model.load_state_dict(before)
        model.zero_grad(set_to_none=True)
    return True
