"""Rules that detect unintended spending of a running job. Pure: facts in, findings out.

Each rule returns a finding, or None. An open finding ends at a lower threshold than it begins, so that a figure near
the threshold does not raise two alerts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from webapp.alerts.models import Kind, Severity
from webapp.formatting import display_usd

BURN_TIMES = 3.0
BURN_OVER_TIMES = 2.0
BURN_WINDOW_S = 300.0
RETRIES_AT_LEAST = 20
RETRIES_SHARE = 0.5
RETRIES_COUNT = 200
"""So many failed calls in a window are an anomaly on a cloud that bills, at any share: each retry is billed."""
NO_STEPS_SHARE = 0.02
_PER_HOUR = 3600


@dataclass(frozen=True)
class Facts:
    """Figures of a running job. Rates cover five minutes of the platform's time, counts those of the wall clock."""

    name: str
    limit_picodollars: int
    unreal: bool
    expected_picodollars_per_s: float | None = None
    burn_picodollars_per_s: float | None = None
    failed_calls: int = 0
    settled_calls: int = 0
    spent_since_steps_picodollars: int = 0
    standing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Finding:
    kind: Kind
    severity: Severity
    sentence: str


def burn(facts: Facts) -> Finding | None:
    """The job spends several times faster than forecast."""
    expected, seen = facts.expected_picodollars_per_s, facts.burn_picodollars_per_s
    if not expected or seen is None:
        return None
    times = seen / expected
    if times <= (BURN_OVER_TIMES if Kind.BURN in facts.standing else BURN_TIMES):
        return None
    return Finding(
        Kind.BURN,
        Severity.WARNING,
        f"{facts.name} spends {display_usd(round(seen * _PER_HOUR))} an hour, {times:.1f} times what was forecast"
        f" ({display_usd(round(expected * _PER_HOUR))}). Look at its actors and failed calls, or stop it;"
        f" it cannot spend more than {display_usd(facts.limit_picodollars)} in all.",
    )


def retries(facts: Facts) -> Finding | None:
    """Calls fail and are paid for again: a large share of them, or a large number."""
    calls = facts.failed_calls + facts.settled_calls
    share = facts.failed_calls / calls if calls else 0.0
    many = not facts.unreal and facts.failed_calls >= RETRIES_COUNT
    line = RETRIES_SHARE / 2 if Kind.RETRIES in facts.standing else RETRIES_SHARE
    if not many and (facts.failed_calls < RETRIES_AT_LEAST or share < line):
        return None
    return Finding(
        Kind.RETRIES,
        Severity.CRITICAL if share >= RETRIES_SHARE else Severity.WARNING,
        f"{facts.failed_calls:,} calls of {facts.name} failed in five minutes, {100 * share:.0f} % of all, and failed"
        " calls are paid for as well. The events on its page say why they fail; stop it if they go on.",
    )


def no_steps(facts: Facts) -> Finding | None:
    """The job spends money without a training step."""
    spent = facts.spent_since_steps_picodollars
    if spent < max(1, NO_STEPS_SHARE * facts.limit_picodollars):
        return None
    return Finding(
        Kind.NO_STEPS,
        Severity.CRITICAL,
        f"{facts.name} has spent {display_usd(spent)} in the last ten minutes without a single step of training."
        " Look at its events, or stop it before more is lost.",
    )


RULES: tuple[Callable[[Facts], Finding | None], ...] = (burn, retries, no_steps)
OVER: dict[str, str] = {
    Kind.BURN: "It spends about as forecast again.",
    Kind.RETRIES: "Its calls come back again.",
    Kind.NO_STEPS: "It makes steps again.",
}
WATCHED = frozenset(OVER)
ENDED = "The job is no longer running."


def findings(facts: Facts) -> list[Finding]:
    """The findings of all rules."""
    return [found for rule in RULES if (found := rule(facts)) is not None]
