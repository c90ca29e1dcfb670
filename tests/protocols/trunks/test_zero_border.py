"""The padding with zeros equals torch's: values, gradients and memory layout."""

import pytest
import torch
from torch.nn import functional

from protocols.trunks.zero_border import with_zero_border


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 2), (2, 2), (0, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_equals_torchs_padding(layout, before, after, dtype):
    images = torch.randn(3, 5, 7, 6).to(dtype).contiguous(memory_format=layout)
    ours, usual = images.clone().requires_grad_(), images.clone().requires_grad_()
    padded = with_zero_border(ours, before, after)
    expected = functional.pad(usual, (before, after, before, after))
    assert torch.equal(padded, expected)
    assert padded.is_contiguous(memory_format=layout)
    weights = torch.randn(expected.shape).to(dtype)
    for result in (padded, expected):
        (result * weights).sum().backward()
    assert torch.equal(ours.grad, usual.grad)
    assert ours.grad.is_contiguous(memory_format=layout)
    with torch.no_grad():
        assert torch.equal(with_zero_border(images, before, after), expected)


def test_an_exported_program_has_torchs_padding():
    class Padding(torch.nn.Module):
        def forward(self, images):
            return with_zero_border(images, 1, 2)

    images = torch.randn(2, 3, 4, 4)
    program = torch.export.export(Padding(), (images,))
    assert torch.equal(program.module()(images), functional.pad(images, (1, 2, 1, 2)))
    assert any("pad" in str(node.target) for node in program.graph.nodes)
