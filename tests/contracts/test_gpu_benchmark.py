"""`make bench-gpu` and the script that takes it to a machine without network work here, with tiny sizes."""

from pathlib import Path

import pytest
import torch

from tests.benchmarks import gpu

ROOT = Path(__file__).resolve().parents[2]
CPU = gpu.Setup(torch.device("cpu"), True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gpu.main(["--out", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().out == "bench-gpu: this machine has no CUDA, so nothing was measured\n"
    assert not (tmp_path / "out.json").exists()


@pytest.mark.usefixtures("same_threads_afterwards")
@pytest.mark.parametrize("part", ["retrieval", "steps", "loop", "crops"])
def test_a_part_is_measured_once(part: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    gpu.measure(part, CPU, out)
    found = gpu.written(out)[part]
    assert list(found) == list(gpu.PARTS[part](CPU))
    assert not [name for name, numbers in found.items() if "failed" in numbers]
    for numbers in found.values():
        assert all(value > 0 for key, value in numbers.items() if key in ("lowest", "median", "steps_per_second"))
    before = out.read_text()
    gpu.measure(part, CPU, out)
    assert out.read_text() == before


@pytest.mark.long
def test_all_parts_run_in_their_processes(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert gpu.main(["--smoke", "--out", str(out)]) == 0
    assert list(gpu.written(out)) == list(gpu.PARTS)
    assert [name for part in gpu.written(out).values() for name, found in part.items() if "failed" in found] == []
