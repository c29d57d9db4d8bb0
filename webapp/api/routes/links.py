"""Links that show one job, comparison or report to people without an account. Editors make, list and
revoke them. Making one needs the scope `manage`, as a link outlasts the token that made it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.shortcuts import get_object_or_404
from pydantic import Field, StringConstraints

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.router import ApiRouter, ArchivedEditorsProject, EditorsProject, Person
from webapp.api.schemas import Request, Shape
from webapp.clock import SYSTEM_CLOCK
from webapp.sharing import services
from webapp.sharing.models import SharedLink

router = ApiRouter(tags=["sharing"])
_Key = Annotated[str, StringConstraints(max_length=40, pattern=r"^[a-z0-9_]+$")]
_Site = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class LinkShape(Shape):
    id: int
    kind: Literal["job", "comparison", "report"]
    title: str
    job: str | None
    money: bool = Field(description="Whether it shows money.")
    embed_on: list[str] = Field(description="Sites that may embed it; `*`: any.")
    hint: str = Field(description="The end of its secret.")
    made_by: str | None
    since: datetime
    ends_at: datetime | None
    last_used_at: datetime | None
    ended: str = Field(description="Why it does not work; empty: it works.")


class MadeLink(LinkShape):
    link: str = Field(description="For everyone who has it. Only this response contains it.")
    embed: str = Field(description="The address for a frame on those sites; empty: none may embed it.")


class NewLink(Request):
    """Of a job or a comparison (`of`), or of costs (`range`, with `by` and `prices`)."""

    of: list[_Key] = Field(
        [], max_length=10, description="A job, or the jobs and groups (group_7) of a comparison."
    )
    range: Literal["", "this-month", "last-month", "last-7-days", "last-30-days"] = Field(
        "", description="Instead of `of`: costs of these days, as they are on the day of looking."
    )
    by: Literal["day", "month", "job", "cloud", "service", "tag"] = "day"
    prices: Literal["actual", "simulated", "emulated"] = "actual"
    money: bool = Field(False, description="Show money. Costs cannot be shared without.")
    days: Literal[7, 30, 90] | None = Field(30, description="How long it works; null: until it is revoked.")
    embed_on: list[_Site] = Field([], max_length=services.MOST_SITES)


@router.get("/projects/{slug}/links", summary="Shared links")
def list_links(
    project: ArchivedEditorsProject, after: After = 0, limit: Limit = 50
) -> NumberedPage[LinkShape]:
    """Those that are not revoked, in the order in which they were made. Their secrets are not stored."""
    rows = services.links_of(project)
    ended = services.why_ended(rows, SYSTEM_CLOCK.now())
    return oldest_first(rows, after, limit, lambda row: LinkShape.of(row, **_shown(row, ended[row.pk])))


@router.post(
    "/projects/{slug}/links", auth=Token("manage"), response=201, summary="Share a job, comparison or costs"
)
def make_link(project: EditorsProject, person: Person, link: NewLink) -> MadeLink:
    """Read-only and live, for everyone who has the link."""
    report = {"range": link.range, "by": link.by, "prices": link.prices} if link.range else None
    made, path = services.make_link(
        project=project,
        user=person,
        of=link.of,
        report=report,
        money=link.money,
        days=link.days,
        sites=link.embed_on,
    )
    url = f"{settings.STARLING_BASE_URL}{path}"
    embed = f"{url}embed/" if made.sites else ""
    return MadeLink.of(made, link=url, embed=embed, **_shown(made, ""))


@router.delete(
    "/projects/{slug}/links/{link_id}", auth=Token("jobs"), response=204, summary="Revoke a shared link"
)
def revoke_link(project: ArchivedEditorsProject, link_id: RowId) -> None:
    """Pages that show it close within seconds. Revoking it again is a 404."""
    services.revoke_link(get_object_or_404(SharedLink, pk=link_id, project=project, revoked_at=None))


def _shown(link: SharedLink, ended: str) -> dict[str, Any]:
    return {
        "job": link.job_id,
        "money": link.with_money,
        "embed_on": link.sites,
        "made_by": link.created_by and link.created_by.email,
        "since": link.created_at,
        "ends_at": link.expires_at,
        "ended": ended,
    }
