"""Precision as torch's settings, and the origin of numbers that torch computed."""

import subprocess
import warnings

import pytest
import torch

from protocols.machine import torch_state
from protocols.machine.torch_state import exact_products, torch_provenance, use_precision
from protocols.metrics.retrieval import query_scores
from results.records.provenance import Provenance

CUDA, CPU = torch.device("cuda"), torch.device("cpu")


def flags():
    """torch's settings for products, convolutions and recurrent layers."""
    cudnn = torch.backends.cudnn
    return torch.backends.cuda.matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision


@pytest.fixture(autouse=True)
def as_before():
    yield
    use_precision("float32")


@pytest.mark.parametrize(
    ("precision", "products", "convolutions"),
    [("float32", "ieee", "tf32"), ("ieee", "ieee", "ieee"), ("amp", "tf32", "tf32")],
)
def test_a_precision_sets_products_and_convolutions_without_a_warning(precision, products, convolutions):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for before in ("float32", "amp"):
            use_precision(before)
            use_precision(precision)
            assert flags() == (products, convolutions, convolutions)
            # Reading the older names fails where they disagree; torch.export does so.
            assert torch.backends.cuda.matmul.allow_tf32 == (products == "tf32")
            assert torch.backends.cudnn.allow_tf32 == (convolutions == "tf32")


def test_what_decides_ranks_is_computed_exactly(monkeypatch):
    seen = []
    product = torch.mm

    def mm(*args, out):
        seen.append(flags()[0])
        return product(*args, out=out)

    use_precision("amp")
    monkeypatch.setattr(torch, "mm", mm)
    query_scores(torch.randn(8, 3), torch.arange(8) // 2)
    assert set(seen) == {"ieee"}
    assert flags() == ("tf32",) * 3
    with pytest.raises(ZeroDivisionError), exact_products():
        raise ZeroDivisionError
    assert flags() == ("tf32",) * 3


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA something")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91900)
    torch_state._driver.cache_clear()
    yield
    torch_state._driver.cache_clear()


def test_numbers_from_a_gpu_tell_what_computed_them(gpu, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, "580.65.06\n580.65.06\n")
    )
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    use_precision("amp")
    made = torch_provenance(CUDA)
    assert made.device == "NVIDIA something"
    assert {key: made.versions[key] for key in ("cuda", "cudnn", "driver")} == {
        "cuda": "13.0",
        "cudnn": "91900",
        "driver": "580.65.06",
    }
    assert (made.math["TF32 in products"], made.math["TF32 in convolutions"]) == ("True", "True")
    assert made.math["NVIDIA_TF32_OVERRIDE"] == "0"
    assert Provenance.model_validate_json(made.model_dump_json()) == made
