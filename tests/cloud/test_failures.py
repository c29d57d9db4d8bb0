"""What a failed call says to people."""

from __future__ import annotations

import pytest
import torch

from cloud.failures import from_exception


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such weights"), "ValueError: no such weights at"),
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which"
                " 1.12 GiB is free."
            ),
            "The GPU's memory is full (torch asked for 2.00 GiB more). Choose smaller minibatches, a smaller network",
        ),
        (
            torch.OutOfMemoryError("HIP out of memory."),
            "The GPU's memory is full. Choose smaller minibatches",
        ),
    ],
)
def test_the_first_line_says_what_happened_and_what_to_do(error: Exception, said: str) -> None:
    try:
        raise error
    except type(error) as raised:
        failure = from_exception(raised)
    first, *frames = failure.reason.splitlines()
    assert first.startswith(said)
    assert f" at tests/cloud/{__name__.rpartition('.')[2]}.py:" in first
    assert any("raise error" in frame for frame in frames)
    assert failure.code == "error"
