"""Pictures pass a network in parts of 64, on as many cores as there are; the parts' gradients are added in order.

Parts have the same size on every machine and each is computed by one thread, so numbers do not depend on how many
cores there are or how busy they are: a second core only saves time. Parts rather than torch's own threads, because
these meet after every operation, and lose most of the second core where actors or other jobs want some of it too.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch.autograd.function import once_differentiable

# Large enough to keep one core's matrix products efficient, small enough that four cores share a minibatch of 256.
PART = 64
_THREADS_AT_MOST = 16

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
Tensors = tuple[torch.Tensor, ...]
Forward = Callable[[Mapping[str, torch.Tensor], torch.Tensor], Tensors]


def in_parts(forward: Forward, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor) -> Tensors:
    """`forward(parameters, observations)`, whose results have a row for each observation, computed part by part.

    Gradients with respect to the parameters can be taken of it, once; not with respect to the observations.
    """
    if len(observations) <= PART or observations.device.type != "cpu":
        return forward(parameters, observations)
    if torch.is_grad_enabled():
        results: Tensors = _InParts.apply(  # type: ignore[no-untyped-call]
            forward, tuple(parameters), observations, *parameters.values()
        )
        return results

    def without_gradient(part: torch.Tensor) -> Tensors:
        # Whether gradients are wanted is a setting of each thread.
        with torch.no_grad():
            return forward(parameters, part)

    return _joined(_side_by_side(without_gradient, torch.split(observations, PART)))


class _InParts(torch.autograd.Function):
    """Each part has a graph of its own, from own leaves that share the parameters' memory."""

    @staticmethod
    def forward(
        ctx: Any, forward: Forward, names: tuple[str, ...], observations: torch.Tensor, *weights: torch.Tensor
    ) -> Tensors:
        def run(part: torch.Tensor) -> tuple[list[torch.Tensor], Tensors]:
            with torch.enable_grad():
                leaves = [weight.detach().requires_grad_() for weight in weights]
                return leaves, forward(dict(zip(names, leaves, strict=True)), part)

        ctx.parts = _side_by_side(run, torch.split(observations, PART))
        return _joined([tuple(result.detach() for result in results) for _, results in ctx.parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        shares = zip(*(torch.split(gradient, PART) for gradient in gradients), strict=True)

        def pull(part: tuple[tuple[list[torch.Tensor], Tensors], Tensors]) -> Sequence[torch.Tensor | None]:
            (leaves, results), share = part
            return torch.autograd.grad(results, leaves, share, allow_unused=True)

        first, *others = _side_by_side(pull, list(zip(ctx.parts, shares, strict=True)))
        # The graphs are spent; what they hold is large.
        ctx.parts = None
        total = [gradient for gradient in first if gradient is not None]
        for other in others:
            torch._foreach_add_(total, [gradient for gradient in other if gradient is not None])
        return None, None, None, *first


def _joined(parts: Sequence[Tensors]) -> Tensors:
    return tuple(torch.cat(pieces) for pieces in zip(*parts, strict=True))


def _side_by_side(work: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """`work` of each part, in their order."""
    return list(_threads().map(work, parts))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """As many threads as cores that this process may use; torch does not start threads of its own in them."""
    cores = len(os.sched_getaffinity(0)) if sys.platform.startswith("linux") else os.cpu_count() or 1
    return ThreadPoolExecutor(
        min(cores, _THREADS_AT_MOST), "part", initializer=torch.set_num_threads, initargs=(1,)
    )
