"""Pictures pass a network in shards of 64, on as many cores as there are; the shards' gradients are added in order.

Shards have the same size on every machine and each is computed by one thread, so results do not depend on the number
of cores or their load: a second core only saves time. torch's own threads synchronise after every operation, so they
would lose most of the second core when actors or other jobs use some of it.
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


def apply_in_shards(
    forward: Forward, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor
) -> Tensors:
    """Compute `forward(parameters, observations)`, whose results have a row for each observation, shard by shard.

    The result's gradients by the parameters can be taken, once; those by the observations cannot.
    """
    if len(observations) <= PART or observations.device.type != "cpu":
        return forward(parameters, observations)
    if torch.is_grad_enabled():
        results: Tensors = _ShardedForward.apply(  # type: ignore[no-untyped-call]
            forward, tuple(parameters), observations, *parameters.values()
        )
        return results

    def without_gradient(part: torch.Tensor) -> Tensors:
        # Whether torch records gradients is a setting of each thread.
        with torch.no_grad():
            return forward(parameters, part)

    return _joined(_side_by_side(without_gradient, torch.split(observations, PART)))


class _ShardedForward(torch.autograd.Function):
    """Each shard has its own graph with its own leaves, which share the parameters' memory."""

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
        # The graphs are used up, and they hold much memory.
        ctx.parts = None
        total = [gradient for gradient in first if gradient is not None]
        for other in others:
            torch._foreach_add_(total, [gradient for gradient in other if gradient is not None])
        return None, None, None, *first


def _joined(parts: Sequence[Tensors]) -> Tensors:
    return tuple(torch.cat(pieces) for pieces in zip(*parts, strict=True))


def _side_by_side(work: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Return `work` of each shard, in order."""
    return list(_threads().map(work, parts))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Return a pool of as many threads as this process may use cores. torch starts no threads of its own in them."""
    cores = len(os.sched_getaffinity(0)) if sys.platform.startswith("linux") else os.cpu_count() or 1
    return ThreadPoolExecutor(
        min(cores, _THREADS_AT_MOST), "part", initializer=torch.set_num_threads, initargs=(1,)
    )
