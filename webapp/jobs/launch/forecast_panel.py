"""Forecasts of jobs as text, for the form's panel and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import Band, Forecast, NoForecast
from cloud.timing.forecasting.bill import forecast_parts
from training.scaling.fixed import Fixed
from training.tasks.supervised_spec import Supervised
from webapp.accounts.models import Project
from webapp.jobs.launch.forecasts import forecast_of, learned_forecast
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD, display_least_usd

_ONE_MACHINE, _CORES = "one-machine", 16
_UNITS = (("s", 1 / 60, 1.5), ("min", 1.0, 90.0), ("h", 60.0, 48 * 60.0), ("days", 1440.0, float("inf")))


@dataclass(frozen=True)
class Ranged:
    """A figure with its range, as in `21 min (18–30)`."""

    usual: str
    low: str
    high: str

    def __str__(self) -> str:
        return self.usual if self.low == self.high else f"{self.usual} ({self.low}–{self.high})"


def panel(spec: JobSpec, project: Project | None = None) -> dict[str, Any]:
    """Return the form's forecast panel, adjusted by past runs of a project."""
    try:
        forecast = forecast_of(spec) if project is None else learned_forecast(project, spec)
    except NoForecast as refusal:
        return {"refusal": str(refusal)}
    if forecast.rounds.p90 == 0:
        return {"refusal": nothing_begins(forecast, spec)}
    return {
        "forecast": forecast,
        "cost": None if forecast.costs_nothing else money(forecast.dollars),
        "time": time(forecast.minutes),
        "until": until(forecast, spec),
        "note": keep_ranges_together(note(forecast, spec)),
        "machine": keep_ranges_together(on_one_machine(spec)),
        "assumptions": [keep_ranges_together(sentence) for sentence in forecast.assumptions],
        "parts": breakdown(forecast),
        "figures": [
            (spec.training.progress_unit.capitalize(), format_count_range(forecast.steps)),
            (f"{spec.training.round_name}s".capitalize(), format_count_range(forecast.rounds)),
            ("Calls", format_count_range(forecast.calls)),
            ("Cold starts", format_count_range(forecast.cold_starts)),
        ],
        "matters": [
            (spec.training.declaration.say(matter.title), spread(matter, forecast))
            for matter in forecast.matters
        ],
    }


def on_one_machine(spec: JobSpec) -> str:
    """Return what the same training of a model would take and cost on one plain machine; empty for other jobs, for one
    that runs there, and without a forecast.
    """
    training, platform = spec.training, spec.platform
    if not isinstance(training, Supervised) or getattr(platform, "profile", "") == _ONE_MACHINE:
        return ""
    workers = Fixed(actors=min(_CORES, training.scaling.largest))
    changes = {
        "training": training.model_copy(update={"scaling": workers}),
        "platform": SimulatedOptions(profile=_ONE_MACHINE),
    }
    try:
        forecast = forecast_of(spec.model_copy(update=changes))
    except NoForecast:
        return ""
    if forecast.rounds.p90 == 0:
        return ""
    ends = "" if forecast.ends_by != "budget" else ", where the budget would end it"
    figures = f"about {money(forecast.dollars)} and {time(forecast.minutes)} with its start"
    return f"One plain machine (c5.4xlarge): {figures}{ends}."


def keep_ranges_together(sentence: str) -> str:
    """Keep ranges on one line, with a word joiner after each dash."""
    return sentence.replace("–", "–\u2060")


def headline(forecast: Forecast, spec: JobSpec) -> str:
    """Return the whole forecast as one sentence."""
    if forecast.rounds.p90 == 0:
        return nothing_begins(forecast, spec)
    if forecast.costs_nothing:
        return f"Costs nothing; about {time(forecast.minutes)} on this machine {until(forecast, spec)}."
    return f"About {money(forecast.dollars)} and {time(forecast.minutes)} {until(forecast, spec)}."


def nothing_begins(forecast: Forecast, spec: JobSpec) -> str:
    least = display_least_usd(round(forecast.least_budget * PICODOLLARS_PER_USD))
    first = f"the first {spec.training.round_name}"
    return f"Nothing would begin: the budget must hold what {first} may cost at worst, {least}."


def until(forecast: Forecast, spec: JobSpec) -> str:
    """Return what ends the job that cost and time are forecast for."""
    stop, unit = spec.training.stop, spec.training.progress_unit
    match forecast.ends_by:
        case "rounds":
            return f"for {stop.rounds:,} {spec.training.round_name}s"
        case "minutes":
            return f"for about {format_count_range(forecast.steps).usual} {unit}"
        case "budget":
            return f"until the budget ends it after about {format_count_range(forecast.steps).usual} {unit}"
    return f"for {stop.progress_limit:,} {unit}"


def note(forecast: Forecast, spec: JobSpec) -> str:
    """Return how likely the budget ends the job, and why it may do so before all of it is spent; empty if unlikely."""
    if forecast.budget_share == 0 or forecast.costs_nothing:
        return ""
    left = f"${usd(forecast.kept_back)} must stay free for calls and rent."
    if forecast.ends_by == "budget":
        stop = spec.training.stop
        if stop.progress_limit is None and stop.rounds is None and stop.minutes is None:
            return f"Only the budget is sure to end it. {left}"
        return f"The whole: about {money(forecast.whole_dollars)}. {left}"
    tenths = min(9, max(1, round(10 * forecast.budget_share)))
    return f"The budget ends it early in about {tenths} of 10 cases. {left}"


def usd(dollars: float) -> str:
    return money(Band(dollars, dollars, dollars)).usual.removeprefix("$")


def breakdown(forecast: Forecast) -> list[tuple[str, str]]:
    """Return the cost of each part, all with the same number of decimals."""
    digits = 2 if forecast.dollars.p50 >= 10 else min(9, 2 - _exponent(max(forecast.dollars.p50, 1e-6)))
    least = 10.0**-digits
    rows = []
    for part in forecast_parts():
        usual = forecast.parts[part.key].p50
        if forecast.parts[part.key].p90 > 0:
            rows.append((part.title, f"${usual:,.{digits}f}" if usual >= least else f"< ${least:.{digits}f}"))
    return rows


def money(dollars: Band) -> Ranged:
    """Format dollars: two significant digits below a dollar, cents above, whole dollars from a hundred on."""
    digits = 0
    if dollars.p50 < 100:
        digits = 2
        if 0 < dollars.p50 < 0.1:
            digits = min(9, 1 - _exponent(dollars.p50))
    texts = [f"{amount:,.{digits}f}" for amount in (dollars.p50, dollars.p10, dollars.p90)]
    return Ranged(f"${texts[0]}", texts[1], texts[2])


def time(minutes: Band) -> Ranged:
    """Format a time in the unit of the median, with two or three digits."""
    unit, size = next((unit, size) for unit, size, most in _UNITS if minutes.p50 < most)
    texts = [_short(estimate / size) for estimate in (minutes.p50, minutes.p10, minutes.p90)]
    return Ranged(f"{texts[0]} {unit}", texts[1], texts[2])


def format_count_range(band: Band) -> Ranged:
    """Format a count with three significant digits."""
    exact = band.p10 == band.p90
    texts = [f"{(count if exact else _three_digits(count)):,.0f}" for count in (band.p50, band.p10, band.p90)]
    return Ranged(*texts)


def spread(matter: Any, forecast: Forecast) -> str:
    """Return the effect of a number's range on the job's cost, or on its time if it costs nothing."""
    ends: Sequence[float] = matter.minutes if forecast.costs_nothing else matter.dollars
    low, high = sorted(ends)
    band = Band(low, (low + high) / 2, high)
    texts = time(band) if forecast.costs_nothing else money(band)
    unit = texts.usual.partition(" ")[2]
    return f"{texts.low}–{texts.high} {unit}" if forecast.costs_nothing else f"${texts.low}–{texts.high}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _exponent(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
