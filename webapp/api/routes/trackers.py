"""Trackers of a project: MLflow and W&B, where its runs are sent too."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.views.decorators.debug import sensitive_variables
from pydantic import ConfigDict, Field, SecretStr

from webapp.api.auth import Token
from webapp.api.problems import ApiRefused, cleaned
from webapp.api.router import ApiRouter, OwnersProject, ViewersJob, ViewersProject
from webapp.api.schemas import Request, Shape
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.trackers import queries, services
from webapp.trackers.forms import TrackerForm
from webapp.trackers.models import Tracker

router = ApiRouter(tags=["trackers"])

_Kind = Literal["mlflow", "wandb"]


class TrackerSetting(Request):
    """Without a token it keeps its own, unless the address changes."""

    # Errors name fields, never their values, which may be secrets.
    model_config = ConfigDict(hide_input_in_errors=True)

    address: str = Field("", max_length=300, description="Of MLflow's server; empty for wandb.ai.")
    place: str = Field(max_length=120, description="MLflow's experiment, or W&B's project or entity/project.")
    on: bool = True
    token: Annotated[SecretStr, Field(max_length=4096)] | None = Field(
        None, description="MLflow: a bearer token, or user:password. W&B: an API key. Sealed at once."
    )


class TrackerShape(Shape):
    """A tracker of a project. Its token is in no response."""

    kind: _Kind
    address: str
    place: str
    on: bool
    has_token: bool
    state: str = Field(description="On, Off, Missing or Incomplete.")
    words: str


class TrackedRunShape(Shape):
    """A job in a tracker."""

    kind: _Kind
    url: str = Field(description="The page of its run there; empty before it has one.")
    problem: str = Field(description="Why rounds are missing there; empty if none are.")


@router.get("/projects/{slug}/trackers", summary="Trackers that a project's runs are sent to")
def list_trackers(project: ViewersProject) -> list[TrackerShape]:
    return [_shape(tracker) for tracker in queries.trackers_of(project)]


@router.put("/projects/{slug}/trackers/{kind}", auth=Token("manage"), summary="Set a tracker")
@sensitive_variables("setting", "typed", "fields")
def put_tracker(project: OwnersProject, kind: _Kind, setting: TrackerSetting) -> TrackerShape:
    """For jobs that begin from now on. An address in a private network is refused, unless the operator named it."""
    typed: dict[str, Any] = setting.model_dump(exclude={"token"})
    if setting.token is not None:
        typed["token"] = setting.token.get_secret_value()
    before = queries.trackers_of(project).filter(kind=kind).first()
    fields = cleaned(TrackerForm(typed, kind=kind, tracker=before))
    try:
        made = services.set_tracker(
            project=project, kind=kind, **{**fields, "token": fields["token"] or None}
        )
    except services.TrackerRefused as refusal:
        why = str(refusal)
        problems = [SpecProblem(refusal.field, why)]
        raise ApiRefused(
            422, "tracker", "Nothing was changed.", why, "Correct that, and send it again.", problems
        ) from None
    return _shape(made)


@router.delete(
    "/projects/{slug}/trackers/{kind}", auth=Token("manage"), response=204, summary="Remove a tracker"
)
def remove_tracker(project: OwnersProject, kind: _Kind) -> None:
    """With its token. What was sent stays there."""
    services.remove_tracker(tracker=queries.tracker_in(project, kind))


@router.get("/projects/{slug}/jobs/{job_id}/trackers", summary="A job in trackers")
def list_tracked_runs(job: ViewersJob) -> list[TrackedRunShape]:
    return [TrackedRunShape.of(run) for run in queries.runs_of(job)]


def _shape(tracker: Tracker) -> TrackerShape:
    status = queries.tracker_status(tracker)
    return TrackerShape.of(
        tracker, has_token=tracker.secrets.exists(), state=status.word, words=status.sentence
    )
