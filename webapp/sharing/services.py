"""Links are made, used and revoked. All writes of this app."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from webapp.accounts.models import Membership, Project, Role, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.comparing.groups import picked
from webapp.jobs.models import Job
from webapp.money.budgets import lock_project
from webapp.reports.query_params import parse_query, refusal
from webapp.reports.report_query import BY, PRESETS
from webapp.sharing.allowlist import REPORT_BY, REPORT_FILTERS
from webapp.sharing.models import SharedKind, SharedLink

DAYS = (7, 30, 90)
"""How long a link may work; None: until it is revoked."""
MOST_LINKS = 200
"""That work in a project at once."""
ANY_SITE = "*"
MOST_SITES = 10
_USED_AGAIN_AFTER = timedelta(minutes=1)
_SECRET_LETTERS = 43
_LONGEST_TITLE = 200
_PERIOD = ("range", "from", "to")


class LinkRefused(ValueError):
    """The link is not made; the text says why and what to do."""


@transaction.atomic
@sensitive_variables("secret")
def make_link(
    *,
    project: Project,
    user: User,
    of: Iterable[str] = (),
    report: Mapping[str, str] | None = None,
    money: bool = False,
    days: int | None = DAYS[1],
    sites: Iterable[str] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[SharedLink, str]:
    """A link to the job or comparison that `of` names, or to the `report` of that query; and its path.

    The path holds the secret and cannot be shown again. LinkRefused says why there is no link.
    """
    if days is not None and days not in DAYS:
        raise LinkRefused(f"A link works for {', '.join(map(str, DAYS))} days, or until it is revoked.")
    if report is not None and not money:
        raise LinkRefused("A report is about money. Share it with money shown, or share a job instead.")
    subject = describe(project, of, report, clock)
    lock_project(project.pk)
    if working_links(clock.now()).filter(project=project).count() >= MOST_LINKS:
        raise LinkRefused(
            f"{MOST_LINKS} links of this project work, which is as many as may. Revoke one first."
        )
    secret, now = secrets.token_urlsafe(32), clock.now()
    link = SharedLink.objects.create(
        project=project,
        **subject,
        with_money=money,
        sites=_origins(sites),
        secret_sha256=_digest(secret),
        hint=secret[-4:],
        created_by_id=user.pk,
        created_at=now,
        expires_at=None if days is None else now + timedelta(days=days),
    )
    return link, reverse("sharing:shared", args=[secret])


def revoke_link(link: SharedLink, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """End the link at once. Revoking it again changes nothing."""
    SharedLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=clock.now())


def working_links(now: datetime) -> QuerySet[SharedLink]:
    """Links that are neither revoked nor expired, of jobs that exist, by people who may still make links there."""
    makers = Membership.objects.filter(
        project_id=OuterRef("project_id"),
        user_id=OuterRef("created_by_id"),
        user__is_active=True,
        role__in=[role for role in Role if role.allows(Role.EDITOR)],
    )
    lasts = Q(expires_at=None) | Q(expires_at__gt=now)
    rows = SharedLink.objects.filter(lasts, Exists(makers), revoked_at=None)
    return rows.filter(Q(job=None) | Q(job__deleted_at=None))


def links_of(project: Project) -> QuerySet[SharedLink]:
    """The project's links that are not revoked, newest first; those that no longer work too."""
    rows = SharedLink.objects.filter(project=project, revoked_at=None)
    return rows.select_related("job", "created_by").order_by("-created_at", "-pk")


def links_to(project: Project, described: Mapping[str, Any]) -> QuerySet[SharedLink]:
    """Those of the project's links that lead to what `describe` returned."""
    job, document = described.get("job"), described.get("document", {})
    return links_of(project).filter(kind=described["kind"], job=job, document=document)


def why_ended(links: Iterable[SharedLink], now: datetime) -> dict[int, str]:
    """By link, why it does not work although it is not revoked; empty if it works."""
    links = list(links)
    working = set(working_links(now).filter(pk__in=[link.pk for link in links]).values_list("pk", flat=True))
    return {link.pk: "" if link.pk in working else _why(link, now) for link in links}


ENDED_WITH_ITS_JOB = "the job was deleted"
ENDED_WITH_ITS_MAKER = "its maker may not share here any more"


def _why(link: SharedLink, now: datetime) -> str:
    if link.expires_at is not None and link.expires_at <= now:
        return "expired"
    if link.job is not None and link.job.deleted_at is not None:
        return ENDED_WITH_ITS_JOB
    return ENDED_WITH_ITS_MAKER


@sensitive_variables("secret")
def find_link(secret: str, clock: Clock = SYSTEM_CLOCK) -> SharedLink | None:
    """The working link with this secret; None for any other. Notes that it was used, once a minute."""
    if len(secret) != _SECRET_LETTERS:
        return None
    now = clock.now()
    rows = working_links(now).select_related("project", "job__account", "job__project")
    link = rows.filter(secret_sha256=_digest(secret)).first()
    if link is not None and (link.last_used_at is None or now - link.last_used_at >= _USED_AGAIN_AFTER):
        with suppress(DatabaseError):  # a read needs no write: the disk may be full
            SharedLink.objects.filter(pk=link.pk).update(last_used_at=now)
    return link


def working_among(ids: Collection[int], clock: Clock = SYSTEM_CLOCK) -> set[int]:
    """Which of these links work now, in one query."""
    return set(working_links(clock.now()).filter(pk__in=ids).values_list("pk", flat=True))


def describe(
    project: Project,
    of: Iterable[str] = (),
    report: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Any]:
    """The fields of a link to these: its kind, its title, and what it names. LinkRefused if it cannot be shared."""
    return (
        _report(project, report, clock)
        if report is not None
        else _subject(project, [key for key in of if key])
    )


def _subject(project: Project, keys: list[str]) -> dict[str, Any]:
    """A single job, or what is compared."""
    if len(keys) == 1:
        job = Job.objects.filter(project=project, pk=keys[0], deleted_at=None).first()
        if job is not None:
            return {"kind": SharedKind.JOB, "job": job, "title": job.name[:_LONGEST_TITLE]}
    chosen = picked(project, keys)
    if not chosen.sides or chosen.left_out:
        raise LinkRefused(
            " ".join(chosen.left_out) or "Name a job, or the jobs and groups of a comparison of this project."
        )
    names = [side.group.name if side.group else side.name for side in chosen.sides]
    title = " · ".join(dict.fromkeys(names))
    kept = list(dict.fromkeys(side.key for side in chosen.sides))
    return {"kind": SharedKind.COMPARISON, "document": {"of": kept}, "title": title[:_LONGEST_TITLE]}


def _report(project: Project, query: Mapping[str, str], clock: Clock) -> dict[str, Any]:
    """The costs of a report's address, as far as they may be shared."""
    today = clock.now().date()
    if words := refusal(query, today):
        raise LinkRefused(words)
    if query.get("user"):
        raise LinkRefused("A report of one person's costs names the person, so it is not shared.")
    question = parse_query(query, project, today).question
    if question.by not in REPORT_BY:
        raise LinkRefused(f"Costs by {question.by} are not shared: choose {', '.join(REPORT_BY)}.")
    names = (*_PERIOD, *REPORT_FILTERS)
    kept = {name: str(query[name]) for name in names if query.get(name)}
    period = PRESETS.get(kept.get("range", ""), "")
    if not period and not kept.get("from"):
        kept["range"], period = "this-month", PRESETS["this-month"]
    title = f"Costs by {BY[question.by].lower()}, {period.lower() or question.period}"
    document = {**kept, "by": question.by, "prices": question.prices}
    return {"kind": SharedKind.REPORT, "document": document, "title": title[:_LONGEST_TITLE]}


def _origins(sites: Iterable[str]) -> list[str]:
    """The sites as origins of a content security policy. LinkRefused for what is none."""
    wanted = list(dict.fromkeys(site.strip().rstrip("/").lower() for site in sites if site.strip()))
    if len(wanted) > MOST_SITES:
        raise LinkRefused(f"At most {MOST_SITES} sites may embed one link.")
    for site in wanted:
        if site != ANY_SITE and not _is_origin(site):
            raise LinkRefused(
                f"{site[:80]} is no site. Write https:// and its name, such as https://wiki.example.org, or *."
            )
    return [ANY_SITE] if ANY_SITE in wanted else wanted


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    plain = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    letters = all(letter.isalnum() or letter in ":/.-[]" for letter in text) and text.isascii()
    return parts.scheme in ("https", "http") and named and plain and letters


def _digest(secret: str) -> str:
    # A random secret of 256 bits needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()
