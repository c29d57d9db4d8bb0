"""Actions beside launch and stop: labels, the archive, bounds of actors, and alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Path, Query
from pydantic import BaseModel, Field, StringConstraints

from webapp.alerts import queries as alerts
from webapp.alerts import services
from webapp.alerts.models import Alert
from webapp.api.auth import Token
from webapp.api.paging import Cursor, Limit, Page, newest_first
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Done
from webapp.api.schemas.jobs import JobShape
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.list import actions as list_labels
from webapp.jobs.models import Job

router = ApiRouter(tags=["tending"])
_Id = Annotated[int, Path(ge=0, le=2**63 - 1)]
_Tag = Annotated[
    str, StringConstraints(min_length=1, max_length=list_labels.LONGEST_TAG, pattern=r"^[^\x00,]*$")
]


class Labels(BaseModel):
    """Only the fields that are sent change."""

    model_config = {"extra": "forbid"}

    tags: list[_Tag] | None = Field(
        None, max_length=list_labels.MOST_TAGS, description="These and no others."
    )
    note: Annotated[str, StringConstraints(max_length=list_labels.LONGEST_NOTE)] | None = None
    archived: bool | None = Field(
        None, description="Hidden from lists. Only jobs that are over can be archived."
    )


class ActorBounds(BaseModel):
    """From the next round on. Null: as launched."""

    model_config = {"extra": "forbid"}

    least: int | None = Field(None, ge=1, le=100_000)
    most: int | None = Field(None, ge=1, le=100_000)


class AlertShape(BaseModel):
    id: int
    kind: str
    severity: str
    sentence: str
    subject: str
    money: str = Field(description="simulated or emulated, for money that no one pays; empty for real money.")
    first_at: datetime
    last_at: datetime
    times: int
    state: str
    state_at: datetime
    snoozed_until: datetime | None


class AlertDeed(BaseModel):
    model_config = {"extra": "forbid"}

    do: Literal["acknowledge", "snooze", "settle"]
    how_long: Literal["hour", "day", "change"] = Field("hour", description="To snooze it for.")


@router.put(
    "/projects/{slug}/jobs/{job_id}/labels",
    auth=Token("jobs"),
    response=JobShape,
    summary="Change a job's tags and note, or archive it",
)
def set_labels(done: Done, labels: Labels) -> JobShape:
    def change(*, job: Job, user: Any) -> None:
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
    response=JobShape,
    summary="Change how many actors a job may have",
)
def set_actors(done: Done, bounds: ActorBounds) -> JobShape:
    def change(*, job: Job, user: Any) -> None:
        change_bounds(job=job, user=user, least=bounds.least, most=bounds.most)

    return done(change)


@router.get("/projects/{slug}/alerts", response=Page[AlertShape], summary="Alerts, newest first")
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
    known = alerts.alerts_for(person, project)
    return newest_first(known.filter(state__in=alerts.FILTERS[state][1]), "told_at", cursor, limit, _alert)


@router.post(
    "/projects/{slug}/alerts/{alert_id}",
    auth=Token("jobs"),
    response=AlertShape,
    summary="Acknowledge, snooze or settle an alert",
)
def act_on_alert(project: EditorsProject, person: Person, alert_id: _Id, action: AlertDeed) -> AlertShape:
    """An alert that is over stays as it is. A settled one is raised again if its condition persists."""
    alert = alerts.alert_for(person, project, alert_id)
    if action.do == "snooze":
        services.snooze(alert=alert, user=person, how_long=action.how_long)
    else:
        {"acknowledge": services.acknowledge, "settle": services.settle}[action.do](alert=alert, user=person)
    return _alert(alerts.alert_for(person, project, alert_id))


def _alert(one: Alert) -> AlertShape:
    return AlertShape(
        id=one.pk,
        kind=one.kind,
        severity=one.severity,
        sentence=one.sentence,
        subject=one.subject,
        money=one.unreal,
        first_at=one.first_at,
        last_at=one.last_at,
        times=one.times,
        state=one.state,
        state_at=one.state_at,
        snoozed_until=one.snoozed_until,
    )
