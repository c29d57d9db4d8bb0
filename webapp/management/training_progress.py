"""How far a run in a terminal is, as one line."""

from __future__ import annotations

import time
from typing import Any

from webapp.formatting import display_usd, format_age
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars


class ProgressLine:
    """The run's progress towards the end that comes first: a stop rule, or its budget."""

    def __init__(self, spec: JobSpec) -> None:
        self._stop = spec.training.stop
        self._limit_picodollars = picodollars(spec.budget_usd)
        self._begun: tuple[float, float] | None = None

    def begin(self, now_s: float | None = None) -> None:
        """The run begins at its first round. One that is resumed is timed from its first round on."""
        self._begun = (time.monotonic() if now_s is None else now_s, 0.0)

    def line(self, report: Any, now_s: float | None = None) -> str:
        """Percent, rounds, steps, time left, spent of limit, and the score of the round."""
        spent_picodollars = report.spend.by_now_picodollars if report.spend else 0
        now_s = time.monotonic() if now_s is None else now_s
        share = self._share(report, spent_picodollars)
        began_s, share_then = self._begun = self._begun or (now_s, share)
        parts = [f"{100 * share:.0f} %", f"round {report.round_no:,}", f"{report.total_progress:,} steps"]
        if share > share_then and now_s > began_s:
            left_s = (now_s - began_s) * (1 - share) / (share - share_then)
            parts.append(f"about {format_age(max(1.0, left_s))} left")
        parts.append(f"{display_usd(spent_picodollars)} of {display_usd(self._limit_picodollars)}")
        if report.score is not None:
            parts.append(f"return {report.score:.1f}")
        return " · ".join(parts)

    def _share(self, report: Any, spent_picodollars: int) -> float:
        done = {
            "env_steps": report.total_progress,
            "samples": report.total_progress,
            "rounds": report.round_no,
            "minutes": (report.started_s + report.total_s) / 60,
        }
        limits = {name: getattr(self._stop, name, None) for name in done}
        shares = [done[name] / limit for name, limit in limits.items() if limit]
        return float(min(1.0, max([spent_picodollars / self._limit_picodollars, *shares])))
