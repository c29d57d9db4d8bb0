"""Actions beside launch and stop: labels, the archive, bounds of actors, and alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from ninja import Query
from pydantic import Field, StringConstraints

from webapp.accounts.models import User
from webapp.alerts import queries as alerts
from webapp.alerts import services
from webapp.api.auth import Token
from webapp.api.job_serialization import JobShape
from webapp.api.paging import Cursor, Limit, Page, RowId, newest_first
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Done
from webapp.api.schemas import Request, Shape
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.list import actions as list_labels
from webapp.jobs.models import Job

router = ApiRouter(tags=["tending"])
_Tag = Annotated[
    str, StringConstraints(min_length=1, max_length=list_labels.LONGEST_TAG, pattern=r"^[^\x00,]*$")
]


class Labels(Request):
    """Only the fields that are sent change."""

    tags: list[_Tag] | None = Field(
        None, max_length=list_labels.MOST_TAGS, description="These and no others."
    )
    note: Annotated[str, StringConstraints(max_length=list_labels.LONGEST_NOTE)] | None = None
    archived: bool | None = Field(
        None, description="Hidden from lists. Only jobs that are over can be archived."
    )


class ActorBounds(Request):
    """From the next round on. Null: as launched."""

    least: int | None = Field(None, ge=1, le=100_000)
    most: int | None = Field(None, ge=1, le=100_000)


class AlertShape(Shape):
    id: int
    kind: str
    severity: str
    sentence: str
    subject: str
    money: str = Field(
        validation_alias="unreal",
        description="simulated or emulated, for money that no one pays; empty for real money.",
    )
    first_at: datetime
    last_at: datetime
    times: int = Field(validation_alias="raise_count")
    state: str
    state_at: datetime
    snoozed_until: datetime | None


class AlertDeed(Request):
    do: Literal["acknowledge", "snooze", "settle"]
    how_long: Literal["hour", "day", "change"] = Field("hour", description="To snooze it for.")


@router.put(
    "/projects/{slug}/jobs/{job_id}/labels",
    auth=Token("jobs"),
    summary="Change a job's tags and note, or archive it",
)
def set_job_labels(done: Done, labels: Labels) -> JobShape:
    def change(*, job: Job, user: User) -> None:
        if labels.archived is not None:
            (list_labels.archive if labels.archived else list_labels.unarchive)(job=job, user=user)
        if labels.note is not None:
            list_labels.set_note(job=job, text=labels.note)
        if labels.tags is not None:
            list_labels.set_tags(job=job, names=list_labels.tag_names(",".join(labels.tags)))

    return done(change)


@router.put(
    "/projects/{slug}/jobs/{job_id}/actors",
    auth=Token("jobs"),
    summary="Change how many actors a job may have",
)
def set_job_actors(done: Done, bounds: ActorBounds) -> JobShape:
    def change(*, job: Job, user: User) -> None:
        change_bounds(job=job, user=user, least=bounds.least, most=bounds.most)

    return done(change)


@router.get("/projects/{slug}/alerts", summary="Alerts, newest first")
def list_alerts(
    project: ViewersProject,
    person: Person,
    state: Annotated[
        Literal["", "open", "acknowledged", "snoozed", "over", "all"],
        Query(description="Empty: all that are not over."),
    ] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Page[AlertShape]:
    """An alert that is sent again while you turn pages moves to the first one."""
    states = alerts.FILTERS[state][1] if state else alerts.NOT_OVER
    known = alerts.alerts_for(person, project).filter(state__in=states)
    return newest_first(known, "told_at", cursor, limit, AlertShape.of)


@router.post(
    "/projects/{slug}/alerts/{alert_id}", auth=Token("jobs"), summary="Acknowledge, snooze or settle an alert"
)
def act_on_alert(project: EditorsProject, person: Person, alert_id: RowId, action: AlertDeed) -> AlertShape:
    """An alert that is over stays as it is. A settled one is raised again if its condition persists."""
    alert = alerts.alert_for(person, project, alert_id)
    if action.do == "snooze":
        services.snooze(alert=alert, user=person, how_long=action.how_long)
    else:
        {"acknowledge": services.acknowledge, "settle": services.settle}[action.do](alert=alert, user=person)
    return AlertShape.of(alerts.alert_for(person, project, alert_id))
