"""Shares of a cloud's bill: what each job and each call pays of a service's amount on one day. Pure.

A bill lists no calls, and often no jobs: amounts without a job are shared in proportion to what Starling metered.
"""

from __future__ import annotations

from collections.abc import Mapping


class Sharing:
    """Divides an amount in proportion to weights, one after the other. The shares sum to the amount exactly."""

    def __init__(self, amount: int, whole: int) -> None:
        self._amount = amount
        self._whole = whole
        self._weights = self._given = 0

    def of(self, weight: int) -> int:
        """The share of the next weight; all weights must sum to the whole."""
        if not self._whole:
            return 0
        self._weights += weight
        up_to_here = self._amount * self._weights // self._whole
        share, self._given = up_to_here - self._given, up_to_here
        return share


def paid_by_job(billed: Mapping[str | None, int], metered: Mapping[str, int]) -> dict[str | None, int]:
    """What each job pays of a service's bill of one day. Lines that name no job (None) are shared.

    They go to the jobs without a line of their own, or to all jobs if each has one. Without any job they stay at None.
    """
    paid = dict(billed)
    if None not in paid:
        return paid
    unnamed = {job: amount for job, amount in metered.items() if amount and job not in billed}
    weights = unnamed or {job: amount for job, amount in metered.items() if amount}
    if not weights:
        return paid
    sharing = Sharing(paid.pop(None), sum(weights.values()))
    for job in sorted(weights):
        paid[job] = paid.get(job, 0) + sharing.of(weights[job])
    return paid
