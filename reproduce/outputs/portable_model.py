"""Writes models that run without this suite: torch's exported programs (`.pt2`), state dicts, and ONNX on demand."""

import json
import logging
import warnings
from collections.abc import Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import torch
from torch import Tensor, nn

from losses.plugin import Normalization
from protocols.datasets.dataset import reads_as_mlrc
from protocols.evaluation.evaluate_run import concatenated
from protocols.images.packing import Progress
from protocols.metrics.retrieval import normalized
from protocols.trunks.embedding_model import (
    EmbeddingModel,
    model_of,
    trained_model,
    trunk_width,
    with_trunk,
    without_published_weights,
)
from reproduce.errors import InputError
from reproduce.run.tasks import write_tensors
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK
from results.wording import first_line, listed

TOLERANCE = 1e-5
"""Largest difference between an entry of the suite's embeddings and the same entry of an exported model's."""

ONNX_PACKAGES = ("onnx", "onnxscript", "onnxruntime")

_LARGEST_ONNX = 2**31 - 2**26
"""Bytes of weights that fit into one ONNX file beside the graph: a message of protobuf has less than 2 GiB."""

_PICTURES = "np.stack([preprocess(Image.open(file)) for file in files])"
_OF_PICTURES = "from PIL import Image\nfrom preprocess import preprocess\n"

_CHANNELS = 3
"""Exported models take RGB images; a trunk for grey images averages their channels."""

SEEN = "seen.csv"
"""The file with the classes, and the hashes of their samples, that an exported model was trained on or chosen by."""


class NormalizedModel(nn.Module):
    """A model, or several as an ensemble, with the normalization that comes before embeddings are compared.

    Args:
        models: The models. Embeddings of several are concatenated, as the test does.
        normalization: `unit` or `ball`.
        shape: Shape of one input: (3, crop, crop) for uint8 RGB images, (c,) for float32 features.
    """

    def __init__(self, models: Sequence[EmbeddingModel], normalization: Normalization, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.models, self.normalization, self.shape = nn.ModuleList(models), normalization, shape
        # Its products are float32, so that an exported program takes rows of float16 too.
        self.one: Tensor
        self.register_buffer("one", torch.ones(1), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute normalized embeddings (n, d) of images or features (n, ...), d the sum over all models."""
        inputs = inputs * self.one if len(self.shape) == 1 else inputs
        embeddings = [model(inputs) for model in self.models]
        if len(embeddings) == 1:
            return normalized(embeddings[0], self.normalization)
        return concatenated(embeddings, self.normalization)

    def random_inputs(self, number: int) -> Tensor:
        """Draw inputs; equal numbers give equal inputs."""
        generator = torch.Generator().manual_seed(number)
        if len(self.shape) == 1:
            return torch.randn((number, *self.shape), generator=generator)
        return torch.randint(0, 256, (number, *self.shape), dtype=torch.uint8, generator=generator)


def portable_model(
    specs: Sequence[FoldSpec], weights: Sequence[dict[str, Tensor]], normalization: Normalization
) -> NormalizedModel:
    """Build models as one on the CPU, in evaluation mode.

    Args:
        specs: Specification of each model's network.
        weights: State dict of each, with that of a frozen trunk, which is a part of the model once for all.
    """
    is_frozen = specs[0].conditions.trunk.frozen
    specs = [without_published_weights(with_trunk(spec)) for spec in specs]
    first = specs[0].conditions
    side = first.images.crop
    shape = (trunk_width(first.trunk),) if first.trunk.is_input_features else (_CHANNELS, side, side)
    models = [trained_model(spec, state, torch.device("cpu")) for spec, state in zip(specs, weights, strict=True)]
    if is_frozen:
        for model in models[1:]:
            model.trunk = models[0].trunk
    whole = NormalizedModel(models, normalization, shape).eval().requires_grad_(False)
    for parameter in whole.parameters():  # Of channels-last weights torch's export warns.
        parameter.data = parameter.data.contiguous()
    return whole


def write_portable(
    specs: Sequence[FoldSpec],
    weights: Sequence[dict[str, Tensor]],
    description: dict[str, Any],
    folder: Path,
    *,
    onnx: bool = False,
    writing: Progress | None = None,
) -> float:
    """Write models as one, which `description` describes, and return the largest difference to the suite's embeddings.

    The files are `model.pt2`, the model as torch's exported program, with normalization; `model.pt`, its state dict, or
    those of an ensemble by `fold_0` and so on; `model.json`, its description; `NOTE.txt`, what it is and how it is
    used; and for images `preprocess.py`, what makes its input from a picture. `onnx` adds `model.onnx`; `check_onnx`
    says before whether that is possible. `writing` is called with the number of written forms, and that of all.
    """
    model = portable_model(specs, weights, description["normalization"])
    states = {f"fold_{spec.fold}": state for spec, state in zip(specs, weights, strict=True)}
    write_tensors(folder / "model.pt", states if len(specs) > 1 else weights[0])
    write_json(folder / "model.json", description)
    note = f"{description['note']}\n\n{_use_of(specs[0])}{_use_of_onnx(specs[0]) if onnx else ''}"
    (folder / "NOTE.txt").write_text(note, encoding="utf-8")
    if specs[0].conditions.trunk.name != NO_TRUNK:
        _write_preprocessing(specs[0], folder / "preprocess.py")
    writers = {"model.pt2": write_program, **({"model.onnx": write_onnx} if onnx else {})}
    differences = []
    for done, (name, write) in enumerate(writers.items()):
        if writing is not None:
            writing(done, len(writers))
        differences.append(write(model, folder / name))
    return max(differences)


def check_exportable(spec: FoldSpec, normalization: Normalization) -> None:
    """Raise InputError if torch cannot export a model of this specification, whatever its weights."""
    with torch.random.fork_rng([]):
        weights = model_of(without_published_weights(with_trunk(spec))).state_dict()
    _exported(portable_model([spec], [weights], normalization))


def check_onnx(spec: FoldSpec) -> None:
    """Raise InputError if a model of this specification cannot be written as ONNX."""
    if missing := [package for package in ONNX_PACKAGES if find_spec(package) is None]:
        raise InputError(f"--format onnx needs {listed(missing)}: pip install -e '.[onnx]'")
    if spec.conditions.training.precision == "amp":
        raise InputError(
            f"{spec.method.name}: its model was trained with amp, and computes in bfloat16, for which ONNX Runtime has "
            "no convolutions; leave out --format onnx"
        )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a description."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _use_of(spec: FoldSpec) -> str:
    """Return the lines that load and use a model, and what its inputs are."""
    inputs, modules = "features", "import torch\n"
    meaning = "`features` are float32 or float16 (n, c), the rows of the features file."
    if spec.conditions.trunk.name != NO_TRUNK:
        inputs, modules = f"torch.from_numpy({_PICTURES})", f"import numpy as np\n{modules}{_OF_PICTURES}"
        meaning = "`files` are pictures, which `preprocess` resizes and crops. The model normalises their colours."
    return (
        f'{modules}model = torch.export.load("model.pt2").module()\nembeddings = model({inputs})\n\n'
        f"{meaning} Embeddings are normalised, float32 (n, d).\n"
    )


def _use_of_onnx(spec: FoldSpec) -> str:
    """Return the lines that load and use a model as ONNX."""
    inputs, of_inputs, modules = "features", ", which takes features in float32 only", "import onnxruntime\n"
    if spec.conditions.trunk.name != NO_TRUNK:
        inputs, of_inputs, modules = _PICTURES, "", f"import numpy as np\n{modules}{_OF_PICTURES}"
    return (
        f'\nAs ONNX{of_inputs}:\n\n{modules}session = onnxruntime.InferenceSession("model.onnx")\n'
        f'(embeddings,) = session.run(None, {{"inputs": {inputs}}})\n'
    )


def _write_preprocessing(spec: FoldSpec, path: Path) -> None:
    """Write what makes a model's input from a picture as a Python file that needs none of the suite."""
    images = spec.conditions.images
    values = {
        "resize": tuple(side for side in (images.resize, images.evaluation_resize) if side is not None),
        "crop": images.crop,
        "as_seen": not reads_as_mlrc(spec.dataset),
    }
    template = resources.files("reproduce").joinpath("templates", "preprocess.txt").read_text(encoding="utf-8")
    path.write_text(Template(template).substitute(values), encoding="utf-8")


def write_program(model: NormalizedModel, path: Path) -> float:
    """Write a model with `torch.export`, read it again and compare its embeddings with those of the suite.

    The result is the largest difference between two entries of the embeddings of random inputs. InputError is raised if
    it is larger than `TOLERANCE`.
    """
    torch.export.save(_exported(model), path)
    inputs = model.random_inputs(5)
    return _difference(model(inputs), torch.export.load(path).module()(inputs), "in torch.export")


def write_onnx(model: NormalizedModel, path: Path) -> float:
    """Write a model as ONNX for batches of any size, and compare ONNX Runtime's embeddings as `write_program` does.

    The input is called `inputs`, the output `embeddings`. Weights too large for one file are in a second one beside it.
    """
    import onnxruntime

    program, size = _exported(model), sum(tensor.nbytes for tensor in model.state_dict().values())
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # It warns of packages that the model does not use.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch warns of its own code.
            torch.onnx.export(
                program,
                (),
                path,
                input_names=["inputs"],
                output_names=["embeddings"],
                external_data=size > _LARGEST_ONNX,
                verbose=False,
            )
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        batches = [model.random_inputs(number) for number in (1, 5)]
        found = [torch.from_numpy(session.run(None, {"inputs": batch.numpy()})[0]) for batch in batches]
    except Exception as error:  # Exporter and runtime raise many kinds, by the operation that they do not know.
        raise InputError(
            f"the model cannot be written as ONNX: {type(error).__name__} ({first_line(error)}); leave --format out"
        ) from error
    return max(_difference(model(batch), rows, "as ONNX") for batch, rows in zip(batches, found, strict=True))


def _exported(model: NormalizedModel) -> torch.export.ExportedProgram:
    # Two inputs, because torch takes a size of 1 for a constant.
    inputs, sizes = (model.random_inputs(2),), ({0: torch.export.Dim("n")},)
    try:
        return torch.export.export(model, inputs, dynamic_shapes=sizes)
    except Exception as error:  # torch raises many kinds, by what a user's trunk does.
        raise InputError(
            f"torch cannot export this model for any number of inputs ({first_line(error)}); in a trunk of your own, "
            "write x.shape[0] for len(x), and let nothing else depend on the values or the number of inputs"
        ) from error


def _difference(of_training: Tensor, exported: Tensor, how: str) -> float:
    """Return the largest difference between two entries, NaN if one entry is; raise InputError if it is too large."""
    difference = float((of_training - exported).abs().max())
    if not difference <= TOLERANCE:
        raise InputError(
            f"the model {how} differs from the suite's by {difference:.1e}, more than {TOLERANCE:.0e}; "
            "nothing is written"
        )
    return difference
