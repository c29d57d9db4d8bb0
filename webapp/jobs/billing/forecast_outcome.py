"""The forecast at a job's launch beside what the job came to: in all, and by part where it was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloud.timing.forecasting.outcome import outcome_parts
from webapp.formatting import display_usd, format_percent, format_rough_duration
from webapp.money.models import BillSheet, LaunchForecast

_ALIKE = 0.01


@dataclass(frozen=True)
class ForecastRow:
    """A part of the cost, or all of it."""

    title: str
    forecast: int
    outcome: int

    @property
    def difference(self) -> str:
        """Return how much more or less it came to, signed; "as forecast" within a hundredth."""
        difference = self.outcome - self.forecast
        if abs(difference) <= _ALIKE * self.forecast:
            return "as forecast"
        return f"{'+' if difference > 0 else '−'}{display_usd(abs(difference))}"


@dataclass(frozen=True)
class ForecastOutcome:
    """`rows` are empty for jobs whose forecast was stored without its parts. `final`: the job has ended."""

    row: LaunchForecast
    total: ForecastRow
    rows: Sequence[ForecastRow]
    time_s: float
    final: bool

    @property
    def forecast_sentence(self) -> str:
        """ "At launch about $0.012 ($0.010–$0.016) and about 4 min (3 min–6 min) were forecast." """
        row = self.row
        cost = _ranged(row.cost_p10_picodollars, row.cost_p90_picodollars)
        time = _between(format_rough_duration(row.time_p10_s), format_rough_duration(row.time_p90_s))
        return (
            f"At launch about {display_usd(row.cost_p50_picodollars)}{cost} and about"
            f" {format_rough_duration(row.time_p50_s)}{time} were forecast."
        )

    @property
    def outcome_sentence(self) -> str:
        """ "It came to $0.015 and 5 min: 25 % more than forecast, within its range. Most of that is Learner…" """
        outcome, time = display_usd(self.total.outcome), format_rough_duration(self.time_s)
        if not self.final:
            return f"So far it came to {outcome} and {time}."
        row, forecast = self.row, self.total.forecast
        difference = self.total.outcome - forecast
        words = "as forecast"
        if forecast and abs(difference) > _ALIKE * forecast:
            more = "more" if difference > 0 else "less"
            words = f"{format_percent(abs(difference), forecast)} {more} than forecast"
        inside = row.cost_p10_picodollars <= self.total.outcome <= row.cost_p90_picodollars
        sentence = f"{words}, {'within' if inside else 'outside'} its range.{self._most(difference)}"
        return f"It came to {outcome} and {time}: {sentence}"

    def _most(self, difference: int) -> str:
        """Return the part that explains most of the difference; empty if none stands out."""
        if not self.rows or abs(difference) <= _ALIKE * self.total.forecast:
            return ""
        sign = 1 if difference > 0 else -1
        part = max(self.rows, key=lambda row: sign * (row.outcome - row.forecast))
        if 2 * abs(part.outcome - part.forecast) < abs(difference):
            return ""
        return f" Most of the difference is {part.title.lower()}: {part.difference}."


def forecast_outcome(sheet: BillSheet) -> ForecastOutcome | None:
    """Return the forecast of the bill's job beside the bill; None if there is none, or the bill has no parts."""
    row: LaunchForecast | None = getattr(sheet.job, "launch_forecast", None)
    if row is None or "parts" not in sheet.document:
        return None
    document = sheet.document
    total = ForecastRow("In all", row.cost_p50_picodollars, document["total"])
    rows = _rows(row.parts, document.get("by_forecast_part", {})) if row.parts else []
    return ForecastOutcome(row, total, rows, document["time_s"], sheet.final)


def _rows(forecast: Mapping[str, int], outcome: Mapping[str, int]) -> list[ForecastRow]:
    """Return the parts that were forecast or paid, most expensive first."""
    parts = [part for part in outcome_parts() if part.key in forecast or part.key in outcome]
    rows = [ForecastRow(part.title, forecast.get(part.key, 0), outcome.get(part.key, 0)) for part in parts]
    return sorted(rows, key=lambda row: -max(row.forecast, row.outcome))


def _ranged(low: int, high: int) -> str:
    return _between(display_usd(low), display_usd(high))


def _between(low: str, high: str) -> str:
    return "" if low == high else f" ({low}–{high})"
