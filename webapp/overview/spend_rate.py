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
