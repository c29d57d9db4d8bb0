"""How fast all running jobs of a project spend. Real, simulated, emulated and free jobs are counted apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cloud.platform_kinds import CLOUD_OF, PlatformKind
from webapp.formatting import display_usd, plural
from webapp.jobs.billing.burn_rate import burns_of
from webapp.overview.running_jobs import active

RATED = 50
"""At most this many running jobs are summed, those that cost money first."""


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind of money, and what they spend an hour; 0 if unknown."""

    jobs: int
    hourly: int = 0


@dataclass(frozen=True)
class Rate:
    """Jobs that cost money, jobs whose money no one pays (by its word), and jobs that cost nothing."""

    real: Kind
    unreal: Mapping[str, Kind]
    free: int

    @property
    def jobs(self) -> int:
        return self.real.jobs + self.free + sum(kind.jobs for kind in self.unreal.values())

    @property
    def unreal_word(self) -> str:
        """The word for all of the jobs where none of them is real or free, else empty."""
        return next(iter(self.unreal)) if len(self.unreal) == 1 and not self.real.jobs + self.free else ""

    @property
    def words(self) -> str:
        """The text of the top bar: real money alone, unless there is none."""
        if not self.jobs:
            return "Nothing runs"
        hourly = self.unreal[self.unreal_word].hourly if self.unreal_word else self.real.hourly
        counts = {"real": self.real.jobs, **{word: kind.jobs for word, kind in self.unreal.items()}}
        named = [f"{count:,} {word}" for word, count in {**counts, "free": self.free}.items() if count]
        all_alike = len(named) == 1 and not self.free
        jobs = plural(self.jobs, "job") if all_alike else " · ".join(named)
        return f"{display_usd(hourly)}/h · {jobs}" if hourly else f"{jobs} running"


def rate(project: Any) -> Rate:
    """The rate of all active jobs. If there are very many, only the newest are summed."""
    jobs = active(project)
    rated = jobs.select_related("account").defer("summary", "note")
    burns = burns_of(rated.order_by("simulated", "emulated", "-created_at")[:RATED])
    counts, hourly = Counter[str](), Counter[str]()
    for pk, simulated, emulated, platform in jobs.values_list(
        "pk", "simulated", "emulated", "spec__platform"
    ):
        spends = burns[pk].hourly if pk in burns else 0
        word = "simulated" if simulated else "emulated" if emulated else ""
        if not word and not spends and _is_free(platform or {}):
            word = "free"
        counts[word] += 1
        hourly[word] += spends
    unreal = {word: Kind(counts[word], hourly[word]) for word in ("simulated", "emulated") if counts[word]}
    return Rate(Kind(counts[""], hourly[""]), unreal, counts["free"])


def _is_free(platform: Mapping[str, Any]) -> bool:
    """Whether the job runs on machines without a price."""
    prices = (value for name, value in platform.items() if name.endswith("_usd_per_hour"))
    priced = platform.get("machine") or any(Decimal(str(price or 0)) for price in prices)
    return platform.get("kind", PlatformKind.LOCAL) not in CLOUD_OF and not priced


def state_sentence(rate: Rate) -> str:
    """What is running, and its rate. Real money comes first, and is never added to money that no one pays."""
    if not rate.jobs:
        return "No job of this project is running, so it costs nothing now."
    parts = []
    if rate.real.jobs:
        parts.append(f"{plural(rate.real.jobs, 'costs', 'cost')} money ({_hourly(rate.real)})")
    for word, kind in rate.unreal.items():
        parts.append(f"{plural(kind.jobs, 'is', 'are')} {word} ({_hourly(kind)}, which no one pays)")
    if rate.free:
        parts.append(f"{plural(rate.free, 'costs', 'cost')} nothing")
    jobs = f"{plural(rate.jobs, 'job')} {'is' if rate.jobs == 1 else 'are'} running"
    if len(parts) > 1:
        return f"{jobs}: {', '.join(parts[:-1])} and {parts[-1]}."
    return f"{jobs}{_of_one_kind(rate)}"


def _of_one_kind(rate: Rate) -> str:
    it = "it" if rate.jobs == 1 else "they"
    if rate.free:
        return f". {it.capitalize()} {'costs' if rate.jobs == 1 else 'cost'} nothing."
    kind = rate.unreal[rate.unreal_word] if rate.unreal_word else rate.real
    if not kind.hourly and rate.unreal_word:
        verb, them = ("is", "it") if rate.jobs == 1 else ("are", "them")
        return f". {it.capitalize()} {verb} {rate.unreal_word}: no one pays for {them}."
    if not kind.hourly:
        return f". What {it} {'spends' if rate.jobs == 1 else 'spend'} an hour is not known yet."
    only = f" that is only {rate.unreal_word}" if rate.unreal_word else ""
    return f", spending {display_usd(kind.hourly)} an hour{only}."


def _hourly(kind: Kind) -> str:
    return f"{display_usd(kind.hourly)} an hour" if kind.hourly else "rate not known yet"
