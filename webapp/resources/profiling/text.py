"""Texts and table rows of a memory profile's page."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from cloud.accounts.profiling import MemoryChoice, Size, choice, sizes_of
from webapp.connections.models import Connection
from webapp.connections.queries import is_given_up, is_under_way
from webapp.formatting import Status
from webapp.resources.profiling import queries
from webapp.resources.profiling.models import MemoryProfile, ProfileState


class ProfileRow(NamedTuple):
    """A line of the table. `slower` and `dearer` are beside the fastest and the cheapest, in per cent."""

    memory_mb: int
    picked: bool
    seconds: float
    picodollars: int
    start_s: float | None
    calls: int
    failure: str
    slower: int
    dearer: int


class ProfileResult(NamedTuple):
    rows: list[ProfileRow]
    choice: MemoryChoice | None


def result_of(profile: MemoryProfile) -> ProfileResult:
    sizes = sizes_of(queries.runs_of(profile))
    chosen = choice(sizes)
    good = [size for size in sizes if not size.failure]
    fastest_s = min((size.seconds_per_million for size in good), default=0.0)
    cheapest = min((size.picodollars_per_million for size in good), default=0)
    rows = [_row(size, chosen, fastest_s, cheapest) for size in sizes]
    # No size is chosen before the end: the next one may be better.
    return ProfileResult(rows, chosen if profile.state == ProfileState.DONE else None)


def _row(size: Size, chosen: MemoryChoice | None, fastest_s: float, cheapest: int) -> ProfileRow:
    good = not size.failure
    return ProfileRow(
        size.memory_mb,
        chosen is not None and chosen.memory_mb == size.memory_mb,
        size.seconds_per_million,
        size.picodollars_per_million,
        size.start_s,
        size.calls,
        size.failure,
        round(100 * (size.seconds_per_million / fastest_s - 1)) if good and fastest_s else 0,
        round(100 * (size.picodollars_per_million / cheapest - 1)) if good and cheapest else 0,
    )


def into_the_form(profile: MemoryProfile) -> dict[str, str]:
    """Initial values for the job's form: the chosen memory and the profile's environment; empty without a choice."""
    pick = result_of(profile).choice
    if pick is None:
        return {}
    place = (
        {"profile": "lambda"} if profile.connection_id is None else {"connection": str(profile.connection_id)}
    )
    plan = profile.parsed_plan
    copies = {"copies": str(plan.environments_per_actor)} if plan.environments_per_actor > 1 else {}
    return {"memory_mb": str(pick.memory_mb), "environment": plan.environment.id, **copies, **place}


def profile_status(profile: MemoryProfile | None, now: datetime) -> Status:
    if profile is None:
        return Status("waiting", "circle", "Not profiled", "Nothing has been measured yet.")
    if is_given_up(profile.state, profile.since, now):
        words = "No worker finished it. See that `manage.py up` runs, then profile again."
        return Status("warning", "exclamation-triangle-fill", "No answer", words)
    if is_under_way(profile.state):
        return Status("running", "arrow-repeat", "Profiling", _progress(profile), True)
    if profile.problem:
        return Status("failed", "x-octagon-fill", "Not done", profile.problem)
    pick = result_of(profile).choice
    if pick is None:
        return Status(
            "failed", "x-octagon-fill", "No result", "No size could be measured; the table says why."
        )
    return Status("ok", "check-circle-fill", "Profiled", pick.why)


def _progress(profile: MemoryProfile) -> str:
    plan, done = profile.parsed_plan, len(profile.runs)
    if done:
        return f"{done} of {len(plan.memory_mb) * plan.calls} calls are measured."
    if profile.state == ProfileState.RUNNING and profile.made_mb:
        return "Functions of the missing sizes are being made."
    return "It begins; the first call takes some seconds."


def caution(connection: Connection | None) -> str:
    """A warning about figures that are not from a real account; empty for a real one."""
    if connection is None:
        return (
            "Real rollouts on this machine, with the times and prices that the simulated cloud gives them: a share of a"
            " core by memory, drawn starts, list prices. Good to see how a profile looks; measure your own account"
            " before you rely on one."
        )
    if connection.emulated:
        return (
            "The emulated account declares its speed: with less than 1,769 MB a call is reported and billed as longer"
            " by 1,769 ÷ memory, while the process itself runs as fast as this machine lets it. The money is"
            " not paid."
        )
    return ""
