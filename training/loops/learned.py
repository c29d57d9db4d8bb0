"""Versions that no round has reported yet, and what a round says of them together: their age and their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.codec import Document
from training.reports import Usage


@dataclass(frozen=True)
class LearnedVersion:
    """A version that no round has reported yet: its update's result beside state and weights, and its work."""

    result: Document
    usage: Usage
    took_s: float

    @property
    def amount(self) -> int:
        return int(self.result["env_steps"])

    @property
    def staleness_mean(self) -> float:
        return float(self.result.get("staleness_mean", 0.0))


def staleness_mean(learned: Sequence[LearnedVersion]) -> float:
    """Return by how many versions the data of a round was older than what it changed."""
    if len(learned) == 1:
        return learned[0].staleness_mean
    amount = sum(one.amount for one in learned)
    return sum(one.staleness_mean * one.amount for one in learned) / amount if amount else 0.0


def learner_usage(usages: Sequence[Usage]) -> Usage:
    return usages[0] if len(usages) == 1 else sum_usages(usages)


def sum_usages(usages: Sequence[Usage]) -> Usage:
    """Return the work of several calls together. Times are summed too, as they are billed."""
    return Usage(
        env_steps=sum(usage.env_steps for usage in usages),
        inferences=sum(usage.inferences for usage in usages),
        environment_s=sum(usage.environment_s for usage in usages),
        inference_s=sum(usage.inference_s for usage in usages),
        episodes=sum(usage.episodes for usage in usages),
        minibatches=sum(usage.minibatches for usage in usages),
        samples=sum(usage.samples for usage in usages),
        macs=max((usage.macs for usage in usages), default=0),
        pictures=any(usage.pictures for usage in usages),
        hessian_products=sum(usage.hessian_products for usage in usages),
        bytes_in=sum(usage.bytes_in for usage in usages),
        bytes_out=sum(usage.bytes_out for usage in usages),
        startup_s=sum(usage.startup_s for usage in usages),
        run_s=sum(usage.run_s for usage in usages),
        transfer_s=sum(usage.transfer_s for usage in usages),
        billed_s=sum(usage.billed_s or 0.0 for usage in usages),
        memory_mb=max((usage.memory_mb for usage in usages), default=0),
        fetched_bytes=sum(usage.fetched_bytes for usage in usages),
        fetch_s=sum(usage.fetch_s for usage in usages),
        compute_s=sum(usage.compute_s for usage in usages),
        push_s=sum(usage.push_s for usage in usages),
        processor_s=sum(usage.processor_s for usage in usages),
        most_memory_mb=max((usage.most_memory_mb for usage in usages), default=0),
    )
