"""What the pages of shared links show: contexts of allowed values alone, from the same figures as the pages inside.

Templates get no job, no account and no spec, so they cannot show more than what is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.core.cache import caches
from django.urls import reverse

from webapp.budgets.display import CLOUDS
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.comparing import text
from webapp.comparing.curves import AXES, curves_of, drawn, getting_to, goal_of
from webapp.comparing.figures import JobComparison, SpecDifference, compared, differences
from webapp.comparing.groups import Picked, Side, picked
from webapp.comparing.pareto import ParetoDot, Plane, plane
from webapp.formatting import format_duration, format_score
from webapp.job_states import TERMINAL
from webapp.jobs import queries
from webapp.jobs.billing.bill_panel import spent_of
from webapp.jobs.form.field_titles import variant_titles
from webapp.jobs.job_page import charts_of
from webapp.jobs.models import Job
from webapp.jobs.policies.policy_views import FilmCard, film_card
from webapp.jobs.queries import headings_of
from webapp.jobs.reasons import look_of_job, looks_for_script
from webapp.money.queries import Cap
from webapp.reports import page as reports_page
from webapp.reports.query_params import parse_query
from webapp.reports.table import Costs
from webapp.sharing.allowlist import LONGEST_VALUE, REPORT_BY, job_header, may_show_field, shared_film
from webapp.sharing.models import SharedKind, SharedLink

MOST_ROWS = 50
VERSION_AGE_S = 1.0
"""So old may a version be: many viewers of one link ask once."""


def context_of(link: SharedLink, over: str = "", *, embedded: bool = False) -> dict[str, Any]:
    """What the page of this link shows. `over`: the axis of a comparison. A frame shows the main chart alone."""
    if link.kind == SharedKind.JOB:
        return _job(link, embedded)
    if link.kind == SharedKind.COMPARISON:
        return _comparison(link, over)
    return _report(link)


def version_of(link: SharedLink) -> str:
    """A text that changes when the page of a comparison or a report would show something else."""
    known = caches["process"].get_or_set(f"shared-version:{link.pk}", lambda: _version(link), VERSION_AGE_S)
    return str(known)


def _version(link: SharedLink) -> str:
    if link.kind == SharedKind.COMPARISON:
        jobs = picked(link.project, link.document["of"]).jobs
        return f"{len(jobs)}:{sum(job.last_seq for job in jobs)}"
    costs = Costs(_question(link, SYSTEM_CLOCK))
    return f"{costs.question.last_day}:{costs.total}"


def _job(link: SharedLink, embedded: bool) -> dict[str, Any]:
    assert link.job is not None  # a link of this kind names its job
    job, training = link.job, link.job.training_facts
    whole, money = queries.header(job), link.with_money
    charts = charts_of(job)
    panels = charts["panels"]
    run = {name: panel for name, panel in panels["run"].items() if money or name != "spend"}
    groups = {"run": {"return": run["return"]}} if embedded else {**panels, "run": run}
    # The sentence below the actors' chart may name budgets, that below spending names the limits above.
    return {
        "title": job.name,
        "unreal": job.unreal,
        "money": money,
        "header": job_header(whole, money=money),
        "state": look_of_job(job),
        "since": job.since,
        "states": looks_for_script(),
        "over": job.observed in TERMINAL,
        "facts": _facts(job),
        "score": job.declaration.score,
        "learned": job.declaration.learned,
        "declared": job.declaration,
        "progress_unit": training.progress_unit,
        "steps_wanted": training.progress_limit,
        "cloud_time": job.simulated,
        "amounts": _amounts(job) if money else None,
        **charts,
        "panels": {group: _without_sentences(listed) for group, listed in groups.items()},
    }


def film_card_of(link: SharedLink, secret: str) -> FilmCard | None:
    """The job's films at addresses of this link; None if there is no place for them. Why one failed stays inside."""
    if link.job is None:
        return None
    card = film_card(link.job, lambda film, part: reverse("sharing:film", args=[secret, film.pk, part]))
    if card is None or card.failed:
        return None
    return FilmCard([shared_film(film) for film in card.films], card.sentence)


def _without_sentences(panels: Mapping[str, Any]) -> dict[str, Any]:
    return {name: replace(panel, sentence="") for name, panel in panels.items()}


def _facts(job: Job) -> str:
    """What runs where: "PPO on CartPole-v1, seed 7, on the simulated cloud"."""
    training = job.training_facts
    where = CLOUDS.get(job.cloud, "")
    seed = job.spec["training"].get("seed")
    algorithm = variant_titles("training.algorithm.kind").get(training.method, training.method)
    parts = [f"{algorithm} on {training.subject}", f"seed {seed}" if seed is not None else ""]
    return ", ".join(filter(None, [*parts, f"on {where}" if where else ""]))


def _amounts(job: Job) -> dict[str, int]:
    """The job's money, without the names of budgets."""
    spent = spent_of(job)
    cap: Cap = spent.pop("cap")
    return {**spent, "most": cap.total}


def _comparison(link: SharedLink, over: str) -> dict[str, Any]:
    chosen, money = _with_safe_names(picked(link.project, link.document["of"])), link.with_money
    shown: dict[str, Any] = {"title": link.title, "money": money, "comparison": None}
    if not chosen.sides:
        return shown
    curves = curves_of(chosen.jobs)
    comparison = compared(chosen, curves)
    several = len(chosen.sides) > 1
    goal = goal_of(chosen.sides, curves) if several else None
    getting = {side.place: getting_to(goal, side, curves) for side in chosen.sides} if goal else {}
    rows = [text.row(figures, comparison, getting.get(figures.side.place)) for figures in comparison.sides]
    units = headings_of(chosen.jobs)
    axes = {"steps": units.progress, "rounds": units.rounds, "wall": "Wall", "time": "Time", "usd": "Dollars"}
    allowed = {name: word for name, word in axes.items() if money or name != "usd"}
    return {
        **shown,
        "comparison": {
            "score": comparison.score,
            "scored_by": comparison.scored_by,
            "drawn_by": comparison.drawn_by,
            "named": comparison.named,
        },
        "unreal": next((side.unreal for side in chosen.sides if side.unreal), ""),
        "headings": units,
        "verdicts": text.verdicts(comparison),
        "goal": goal,
        "table": [_row(row, money) for row in rows],
        "sides": _lines(chosen.sides, curves, allowed),
        "sentence": text.chart_sentence(comparison),
        "axes": list(allowed.items()),
        "over": over if over in allowed else AXES[0],
        "planes": _planes(comparison, comparison.named, money),
        "differences": [one for one in differences(chosen.sides) if _may_show(one, money)] if several else [],
        "any_group": any(len(side.jobs) > 1 for side in chosen.sides),
    }


def _with_safe_names(chosen: Picked) -> Picked:
    """The points of a sweep are named by their fields, which may be any: here by their group and number."""
    sides = [
        replace(side, name=f"{side.group.name}, {side.place}")
        if side.group is not None and side.name != side.group.name
        else side
        for side in chosen.sides
    ]
    return replace(chosen, sides=tuple(sides))


def _row(found: Mapping[str, Any], money: bool) -> dict[str, Any]:
    side: Side = found["side"]
    getting, one = found["getting"], found["one"]
    row = {
        "name": side.name,
        "place": side.place,
        "unreal": side.unreal,
        "efficient": one.efficient and money,
        **{name: found[name] for name in ("score", "time", "interval", "runs", "against")},
        "reached": getting and {"count": getting.reached, "lead": getting.lead, "time": getting.time},
    }
    if money:
        row |= {"cost_a_run": one.cost_a_run, "cost": one.cost, "reached_usd": getting.usd if getting else ""}
    return row


def _lines(sides: Sequence[Side], curves: dict[str, Any], axes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {**series, "lines": {name: line for name, line in series["lines"].items() if name in axes}}
        for series in drawn(sides, curves)
    ]


def _planes(comparison: JobComparison, score: str, money: bool) -> list[tuple[str, str, Plane]]:
    shown = [("time", f"{score} and time a run", plane(comparison.sides, "time"))]
    if money:
        shown.insert(0, ("usd", f"{score} and dollars a run", plane(comparison.sides, "usd")))
    known = [(by, title, shown_plane) for by, title, shown_plane in shown if shown_plane is not None]
    return known if money else [(by, title, _without_dollars(one)) for by, title, one in known]


def _without_dollars(pareto: Plane) -> Plane:
    """The plane with its dots' words without what they cost."""
    return replace(pareto, dots=tuple(replace(dot, words=_words(dot)) for dot in pareto.dots))


def _words(dot: ParetoDot) -> str:
    side, iqm, time_s = dot.figures.side, dot.figures.iqm, dot.figures.time_s
    value = format_score(iqm.value, side.score.decimals) if iqm else ""
    time = "unknown time" if time_s is None else f"{format_duration(time_s)} a run"
    return f"{side.name}: {side.score.name} {value}, {time}"


def _may_show(difference: SpecDifference, money: bool) -> bool:
    short = all(len(value) <= LONGEST_VALUE for value in difference.values)
    return short and may_show_field(difference.path, money=money)


def _question(link: SharedLink, clock: Clock) -> Any:
    question = parse_query(link.document, link.project, clock.now().date()).question
    # The link was made with such a question; nothing else is answered.
    return question.model_copy(update={"user": "", "by": question.by if question.by in REPORT_BY else "day"})


def _report(link: SharedLink, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    question = _question(link, clock)
    costs = Costs(question)
    table = costs.table()
    rows = reports_page.rows(table)
    return {
        "title": link.title,
        "money": True,
        "unreal": "" if question.prices == "actual" else question.prices,
        "first_day": question.period.first_day,
        "last_day": question.period.last_day,
        "total": _cost_row(reports_page.total(table)),
        "table_title": table.title,
        "has_calls": table.has_calls,
        "rows": [_cost_row(row) for row in rows[:MOST_ROWS]],
        "left_out": max(0, len(table.rows) - MOST_ROWS),
        "chart": reports_page.chart(costs) if table.rows else None,
    }


def _cost_row(shown: reports_page.PageRow) -> dict[str, Any]:
    row = shown.row
    return {
        "label": row.label,
        "cost": row.cost,
        "exact": shown.exact,
        "calls": row.calls,
        "basis": row.amounts.basis,
        "share": shown.share,
        "share_words": shown.share_words,
    }
