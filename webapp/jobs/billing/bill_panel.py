"""The bill on a job's page, and the page of numbers behind a simulated cloud."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.as_tables import rows
from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.http.form_versions import FormVersion, Value
from webapp.job_states import TERMINAL, Observed
from webapp.jobs.billing.bill_text import numbers_behind, summarize_bill
from webapp.jobs.billing.forecast_outcome import forecast_outcome
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.money.models import Account, Budget, ChargeState, charge_kinds
from webapp.money.queries import Cap, bill_sheet, cap_of, cap_together, own_cap_of


def panel(job: Job) -> dict[str, Any]:
    """Return the template's context. `bill_state` changes with the content; `bill_over`: the bill is final."""
    sheet = bill_sheet(job.pk)
    over = job.observed in TERMINAL
    context: dict[str, Any] = {
        "job": job,
        "bill": None,
        "against": forecast_outcome(sheet) if sheet is not None else None,
        "numbers": None,
        "bill_expected": job.round_no > 0 and not (over and sheet),
        "bill_rests": over or job.observed == Observed.PAUSED,
        "bill_state": f"{job.observed}|{sheet.at.isoformat() if sheet else ''}",
        "bill_over": over and sheet is not None and sheet.final,
    }
    if (spec := job.readable_spec()) is not None:
        context["numbers"] = numbers_behind(spec.platform)
        context["bill"] = summarize_bill(sheet, spec.platform) if sheet is not None else None
    return context


@project_page()
@require_safe
def numbers(request: HttpRequest, project: Project, profile: str, stack: str) -> HttpResponse:
    """Show every number of a cloud and of a stack with its range, kind and source."""
    if profile not in profiles.names() or stack not in stacks.names():
        raise Http404("There is no such cloud or software.")
    tables = [
        {"word": word, "name": name, "model": model, "rows": list(rows(model))}
        for word, name, model in (
            ("Cloud", profile, profiles.load(profile)),
            ("Software", stack, stacks.load(stack)),
        )
    ]
    return render(request, "jobs/numbers.html", {"section": "jobs", "tables": tables})


def cost_by_kind(account: Account) -> list[dict[str, Any]]:
    """Return the number and cost of calls and slices of rent, by kind; kinds without any are left out."""
    sums = (
        account.charges.exclude(state=ChargeState.RELEASED)
        .values("kind")
        .annotate(
            settled=Count("pk", filter=Q(state=ChargeState.SETTLED)),
            open=Count("pk", filter=Q(state=ChargeState.OPEN)),
            picodollars=Sum("settled_picodollars", default=0),
            reserved=Sum("reserved_picodollars", filter=Q(state=ChargeState.OPEN), default=0),
        )
    )
    by_kind = {row["kind"]: row for row in sums}
    return [{"word": word, **by_kind[kind]} for kind, word in charge_kinds() if kind in by_kind]


def suggested_limit(job: Job) -> Decimal:
    """Return twice the present budget, the usual choice when a job should continue."""
    return Decimal(exact_usd(job.account.limit_picodollars)) * 2


def limit_version(job: Job) -> FormVersion:
    """Return what the forms that change the job's limit or its actors are drawn from."""
    bounds = [job.actors_least, job.actors_most]
    least, most = ("" if bound is None else str(bound) for bound in bounds)
    return FormVersion(
        f"limits of {job.pk}",
        (
            Value("The budget", exact_usd(job.account.limit_picodollars), "limit_usd"),
            Value("The fewest actors", least, "least"),
            Value("The most actors", most, "most"),
        ),
    )


def spent_of(job: Job) -> dict[str, Any]:
    """Return the account's amounts for bars and sentences."""
    account, cap = job.account, job_cap(job)
    spent = account.spent_picodollars + account.overrun_picodollars
    return {
        "spent": spent,
        "reserved": account.reserved_picodollars,
        "limit": account.limit_picodollars,
        "free": cap.free,
        "cap": cap,
    }


def cap_of_jobs(jobs: Iterable[Job], later: Sequence[Budget] = ()) -> Cap:
    """Return the most that the jobs may cost in all, `later`: together with further jobs below these budgets."""
    spending: list[Account] = []
    over: list[Account] = []
    for job in jobs:
        (over if job.observed in TERMINAL else spending).append(job.account)
    return cap_together(spending, over, SYSTEM_CLOCK.now(), later)


def job_cap(job: Job) -> Cap:
    """Return the most that the job may cost in all."""
    return own_cap_of(job.account) if job.observed in TERMINAL else cap_of(job.account, SYSTEM_CLOCK.now())
