"""From an interval to a word: a claim holds, does not hold, or is not decided.

A claim holds when its whole 95 % interval is on its side, does not hold when all of it is on the other side, and is not
decided otherwise. Two arms are equal when the 90 % interval lies within the claim's margin: two one-sided tests at 5 %.
Fewer than five pairs of seeds decide nothing at 95 %, whatever their interval.

An experiment has one primary claim. The others are a family: one of them is decided only if its p value is at most 5 %
after Holm's correction for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from research.statistics import holm
from training.statistics.few_seeds import Interval

ENOUGH_SEEDS = 5
ONE_SIDED = 0.90
"""The level of an interval whose two ends are one-sided tests at 5 %."""
_SIGNIFICANT = 0.05
_DECIDED = {"holds": "would hold", "does not hold": "would not hold"}
OTHER_WAY = "It is the other way round."
WEAK = "It is not decided"


@dataclass(frozen=True)
class Judgement:
    """What came of a claim. `interval` is of the ratio of costs, or of the difference of returns over the target."""

    interval: Interval | None
    seeds: int
    against: str
    word: str
    reason: str
    reached: str = ""
    p_value: float | None = None
    alike: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    """Further figures: the interval if environments were drawn, and the claim by other accounts (`ClaimVariant`)."""

    def as_dict(self) -> dict[str, Any]:
        document = asdict(self)
        more = document.pop("more")
        del document["alike"]
        return {**document, "interval": self.interval._asdict() if self.interval else None, **more}


@dataclass(frozen=True)
class ClaimVariant:
    """A claim by another account of the same runs. `words` says what is different; `turned`: its estimate is on the
    other side of no difference.
    """

    name: str
    words: str
    interval: Interval
    word: str
    turned: bool

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "interval": self.interval._asdict()}


def judge(interval: Interval, none: float, seeds: int, *, less: bool) -> tuple[str, str]:
    """The verdict's word and why. `none` is what no difference would be; `less`: below it is what was claimed."""
    if seeds < ENOUGH_SEEDS:
        return undecided(seeds), f"Fewer than {ENOUGH_SEEDS} seeds decide nothing at 95 %."
    if interval.low <= none <= interval.high:
        return undecided(seeds), "The interval contains no difference."
    return ("holds", "") if (interval.high < none) == less else ("does not hold", OTHER_WAY)


def judge_at_least(interval: Interval, margin: float, seeds: int) -> tuple[str, str]:
    """The same of a claim that a ratio is no lower than a margin."""
    word, why = judge(interval, margin, seeds, less=False)
    if interval.low <= margin <= interval.high and seeds >= ENOUGH_SEEDS:
        why = f"The interval contains {margin:g}: neither is shown."
    elif word == "does not hold":
        why = f"All of the interval is below {margin:g}."
    return word, why


def judge_alike(
    interval: Interval, narrow: Interval, limits: tuple[float, float], none: float, seeds: int
) -> tuple[str, str]:
    """The same of a claim that two arms are equal: shown by the 90 % interval within `limits`, and refuted by a 95 %
    interval without `none`.
    """
    if seeds < ENOUGH_SEEDS:
        return undecided(seeds), f"Fewer than {ENOUGH_SEEDS} seeds decide nothing at 95 %."
    within = f"{limits[0]:.2g} to {limits[1]:.3g}"
    if limits[0] <= narrow.low and narrow.high <= limits[1]:
        return "holds", f"The 90 % interval is within {within}: two one-sided tests."
    if not interval.low <= none <= interval.high:
        return "does not hold", f"They differ, and not by less than {within}."
    return undecided(seeds), f"No difference is seen, but neither is it shown to be within {within}."


def firmness(word: str, variants: Sequence[ClaimVariant]) -> list[str]:
    """Say by which other accounts the sign of a verdict turns, by which a decided one is not decided, and by which one
    that is not decided would be, alone.
    """

    def joined(words: Sequence[str]) -> str:
        return ", and ".join(words)

    turned = [variant.words for variant in variants if variant.turned]
    sentences = [f"Its sign turns {joined(turned)}."] if turned else []
    if word in _DECIDED:
        weak = [variant.words for variant in variants if not variant.turned and variant.word != word]
        return [*sentences, f"{WEAK} {joined(weak)}."] if weak else sentences
    for other, would in _DECIDED.items():
        firm = [variant.words for variant in variants if variant.word == other]
        sentences += [f"Alone it {would} {joined(firm)}."] if firm else []
    return sentences


def part_sentence(seeds: int, declared: int) -> str:
    """Say where a judgement rests on a part of the declared seeds; empty where it rests on all or on none."""
    return f"Of its {declared} declared seeds {seeds} are complete." if 0 < seeds < declared else ""


def undecided(seeds: int) -> str:
    return f"not decided by {seeds} seed{'s' * (seeds != 1)}"


def taken_back(reason: str) -> str:
    """Return the reason of a decided claim as that of one which many claims undecide."""
    return reason.replace(WEAK, f"{WEAK}, even alone,").replace(
        OTHER_WAY, "What is seen is the other way round."
    )


def corrected(family: Sequence[Judgement]) -> list[Judgement]:
    """The same judgements, where a p value says little once there are so many of them: Holm's correction.

    Claims of equality are left as they are. Their evidence is the interval within the margin, not a difference.
    """
    known = [place for place, one in enumerate(family) if one.p_value is not None and not one.alike]
    adjusted = dict(zip(known, holm([family[place].p_value or 0.0 for place in known]), strict=True))
    judged = []
    for place, judgement in enumerate(family):
        p_holm = adjusted.get(place)
        if p_holm is None:
            judged.append(judgement)
            continue
        more = {**judgement.more, "p_holm": p_holm, "family": len(known)}
        if p_holm > _SIGNIFICANT and judgement.word in _DECIDED:
            why = f"Alone it would be decided; among {len(known)} claims its p value is {p_holm:.2g}."
            judged.append(
                replace(
                    judgement,
                    word=undecided(judgement.seeds),
                    reason=" ".join(filter(None, (taken_back(judgement.reason), why))),
                    more=more,
                )
            )
        else:
            judged.append(replace(judgement, more=more))
    return judged
