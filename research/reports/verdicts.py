"""What may be said of each claim that was declared: it holds, it does not, or it is not known yet; and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from research.claims import NotBelow, Reaches
from research.experiment import Experiment
from research.reports.outcomes import Summary
from research.statistics import paired_bootstrap
from training.statistics.few_seeds import Interval, probability_of_improvement

_PLAIN = (Reaches, NotBelow)


@dataclass(frozen=True)
class ClaimVerdict:
    """`verdict` is "holds", "does not hold", "open" (runs are missing), or "not decided by N seeds".

    `asked` is the claim in parts, as a page shows it.
    """

    claim: str
    verdict: str
    reason: str
    label: str = ""
    paper: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or name in _ALWAYS}


_ALWAYS = ("claim", "verdict", "reason")


def verdicts(experiment: Experiment, summaries: Sequence[Summary]) -> list[ClaimVerdict]:
    """One for each claim about returns. It is decided only when every seed it was declared for is complete."""
    by_arm = {(summary.arm, summary.environment): summary for summary in summaries}
    return [_verdict(experiment, claim, by_arm) for claim in experiment.claims if isinstance(claim, _PLAIN)]


def _verdict(
    experiment: Experiment, claim: Reaches | NotBelow, by_arm: dict[tuple[str, str], Summary]
) -> ClaimVerdict:
    sentence = sentence_of(experiment, claim)
    sides = [by_arm.get((claim.arm, claim.environment))]
    if not isinstance(claim, Reaches):
        sides.append(by_arm.get((claim.against, claim.environment)))
    present = [side for side in sides if side is not None]
    if len(present) < len(sides):
        return ClaimVerdict(sentence, "open", "It was not part of this run.")
    missing = [side for side in present if len(side.endpoints) < side.planned]
    if missing:
        counted = " and ".join(
            f"{len(side.endpoints)} of {side.planned} seeds of {experiment.arm(side.arm).title}"
            for side in missing
        )
        return ClaimVerdict(sentence, "open", f"Only {counted} are complete.")
    if isinstance(claim, Reaches):
        return _reaches(sentence, claim, present[0])
    return _compared(sentence, *present)


def _reaches(sentence: str, claim: Reaches, side: Summary) -> ClaimVerdict:
    interval = side.interval
    assert interval is not None
    holds = interval.value >= claim.value
    seeds = len(side.endpoints)
    reason = f"The IQM of {seeds} seed{'s' * (seeds > 1)} is {_figures(interval)}."
    if seeds == 1:
        reason = f"The one seed shown scored {interval.value:,.0f}; it proves nothing about others."
    elif holds and interval.low < claim.value:
        reason += " The interval reaches below the goal, so another set of seeds might miss it."
    elif not holds and interval.high >= claim.value:
        reason += " The interval contains the goal, so another set of seeds might reach it."
    return ClaimVerdict(sentence, "holds" if holds else "does not hold", reason)


def _compared(sentence: str, ours: Summary, theirs: Summary) -> ClaimVerdict:
    seeds = sorted(ours.endpoints.keys() & theirs.endpoints.keys())
    x, y = ([side.endpoints[seed] for seed in seeds] for side in (ours, theirs))
    better = f"A seed of ours beats one of theirs with probability {probability_of_improvement(x, y):.2f}."
    difference = paired_bootstrap(x, y, compare="difference")
    holds = difference.high >= 0
    reason = f"The paired difference of IQMs is {_figures(difference)} over {len(seeds)} seeds. {better}"
    return ClaimVerdict(sentence, "holds" if holds else "does not hold", reason)


def sentence_of(experiment: Experiment, claim: Reaches | NotBelow) -> str:
    """The claim in words."""
    arm = experiment.arm(claim.arm).title
    if isinstance(claim, Reaches):
        return f"{arm} reaches {claim.value:,.0f} on {claim.environment} ({claim.source})."
    against = experiment.arm(claim.against).title
    return (
        f"{arm} is not shown to be below {against} on {claim.environment}: the 95 % interval of the difference contains"
        " or exceeds 0."
    )


def threshold_of(experiment: Experiment, environment: str) -> float | None:
    """The return by which learning speed is measured: the goal where one is declared."""
    values = [
        one.value for one in experiment.claims if isinstance(one, Reaches) and one.environment == environment
    ]
    return float(np.min(values)) if values else None


def _figures(interval: Interval) -> str:
    return f"{interval.value:,.0f}, 95 % interval {interval.low:,.0f} to {interval.high:,.0f}"
