"""/metrics for Prometheus: jobs, actors and money, read from the database at each scrape.

Clients need STARLING_METRICS_TOKEN; without one, only this machine may read it. Job ids are no labels: too many.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.expressions import Combinable
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.alerts.models import Alert, AlertState
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import burns_of
from webapp.jobs.launch.requirements import LOOPBACK_HOSTS, is_loopback
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.money.models import RENT, Budget, Charge, ChargeState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SIGNS_OF_A_PROXY = (
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
)
Sample = tuple[dict[str, str], str]


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics. 403 for clients that may not read them."""
    if not _is_allowed(request):
        words = (
            "Send STARLING_METRICS_TOKEN as a bearer token. Without one set, only this machine may read this, and only"
            " of a site whose address is this machine.\n"
        )
        return HttpResponse(words, status=403, content_type="text/plain")
    return HttpResponse("".join(_lines()), content_type=CONTENT_TYPE)


def _is_allowed(request: HttpRequest) -> bool:
    token = settings.STARLING_METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), token.encode())
    # Behind a proxy on this machine everyone comes from this machine, and not every proxy says so: a site that is
    # reached from elsewhere wants its token of anyone.
    host = urlsplit(f"//{request.get_host()}").hostname
    here = is_loopback() and host in LOOPBACK_HOSTS and request.META.get("REMOTE_ADDR") in LOOPBACK_HOSTS
    return here and not any(name in request.headers for name in _SIGNS_OF_A_PROXY)


def _lines() -> Iterator[str]:
    progress = _progress()
    for name, kind, words, samples in (
        ("starling_jobs", "gauge", "Jobs by state.", _jobs()),
        ("starling_actors", "gauge", "Actors of running jobs in their last rounds.", _actors()),
        ("starling_progress_total", "counter", "Environment steps and samples that count.", progress),
        ("starling_env_steps_total", "counter", "The first name of starling_progress_total.", progress),
        ("starling_calls_in_flight", "gauge", "Calls that are reserved and not settled.", _calls()),
        ("starling_cost_dollars_total", "counter", "US dollars spent.", _cost("spent")),
        (
            "starling_reserved_dollars",
            "gauge",
            "US dollars set aside for calls in flight.",
            _cost("reserved"),
        ),
        (
            "starling_burn_rate_dollars_per_hour",
            "gauge",
            "US dollars that running jobs spend in an hour, by recent rounds; for simulated jobs in a simulated hour.",
            _burn(),
        ),
        ("starling_alerts", "gauge", "Alerts that no one has acknowledged yet.", _alerts()),
        ("starling_budget_limit_dollars", "gauge", "A budget's limit.", _budgets("limit")),
        ("starling_budget_spent_dollars", "gauge", "Spent in a budget's period.", _budgets("spent")),
        ("starling_budget_reserved_dollars", "gauge", "Held for jobs in a budget.", _budgets("reserved")),
    ):
        yield f"# HELP {name} {words}\n# TYPE {name} {kind}\n"
        yield from (_line(name, labels, value) for labels, value in samples)


def _line(name: str, labels: dict[str, str], value: str) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _jobs() -> Iterable[Sample]:
    rows = Job.objects.values("project__slug", "observed").annotate(count=Count("pk")).order_by()
    return [({"project": row["project__slug"], "state": row["observed"]}, str(row["count"])) for row in rows]


def _actors() -> Iterable[Sample]:
    rows = _by_kind(Job.objects.filter(observed=Observed.RUNNING), sum=Sum("actors"))
    return [(_kind(row), str(row["sum"])) for row in rows]


def _progress() -> Iterable[Sample]:
    return [(_kind(row), str(row["sum"])) for row in _by_kind(Job.objects.all(), sum=Sum("total_progress"))]


def _calls() -> Iterable[Sample]:
    in_flight = Charge.objects.filter(state=ChargeState.OPEN).exclude(kind=RENT)
    rows = in_flight.values("kind").annotate(count=Count("pk")).order_by()
    return [({"kind": row["kind"]}, str(row["count"])) for row in rows]


def _cost(what: str) -> Iterable[Sample]:
    amount: Combinable = F("account__reserved_picodollars")
    if what == "spent":
        amount = F("account__spent_picodollars") + F("account__overrun_picodollars")
    return [(_kind(row), exact_usd(row["sum"] or 0)) for row in _by_kind(Job.objects.all(), sum=Sum(amount))]


def _by_kind(jobs: QuerySet[Job], **sums: Sum) -> QuerySet[Job, dict[str, Any]]:
    kinds = jobs.values("project__slug", "spec__platform__kind", "simulated", "emulated")
    return kinds.annotate(**sums).order_by()


def _kind(row: Mapping[str, Any]) -> dict[str, str]:
    money = "simulated" if row["simulated"] else "emulated" if row["emulated"] else "actual"
    return {"project": row["project__slug"], "platform": row["spec__platform__kind"], "money": money}


def _burn() -> Iterable[Sample]:
    jobs = Job.objects.filter(observed=Observed.RUNNING).select_related("account", "project")
    sums = Counter[tuple[str, str, bool, bool]]()
    burns = burns_of(jobs)
    for job in jobs:
        if burn := burns.get(job.pk):
            sums[job.project.slug, job.spec["platform"]["kind"], job.simulated, job.emulated] += burn.hourly
    names = ("project__slug", "spec__platform__kind", "simulated", "emulated")
    return [(_kind(dict(zip(names, key, strict=True))), exact_usd(hourly)) for key, hourly in sums.items()]


def _alerts() -> Iterable[Sample]:
    rows = (
        Alert.objects.filter(state=AlertState.OPEN)
        .values("project__slug", "kind")
        .annotate(count=Count("pk"))
    )
    return [
        ({"project": row["project__slug"] or "", "kind": row["kind"]}, str(row["count"]))
        for row in rows.order_by()
    ]


def _budgets(what: str) -> Iterable[Sample]:
    for one in Budget.objects.filter(closed_at=None).select_related("project").order_by("pk"):
        amount = getattr(one, f"{what}_picodollars") + (one.overrun_picodollars if what == "spent" else 0)
        yield (
            {"budget": str(one.pk), "name": one.name, "project": one.project.slug if one.project else ""},
            exact_usd(amount),
        )
