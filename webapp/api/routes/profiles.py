"""Memory profiles of an account, or of the simulated cloud: price, request, poll, and use."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import BaseModel, Field

from cloud.accounts.profiling_runs import ProfilingPlan
from webapp.accounts.models import Project
from webapp.api.auth import Token, project_of, require_scope
from webapp.api.idempotency import create_once
from webapp.api.models import TokenScope
from webapp.api.paging import Cursor, Limit, Page, RowId, newest_first
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsProject, Person
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Shape, Usd
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import Prices
from webapp.resources.profiling import queries, services
from webapp.resources.profiling.models import MemoryProfile
from webapp.resources.profiling.text import into_the_form, profile_status, result_of

router = ApiRouter(tags=["memory profiles"])
_ALL = "/projects/{slug}/connections/{connection_id}/profiles"


class NewProfile(ProfilingPlan):
    """So many calls at each size, one after the other. The first one starts a function and does not count."""

    keep: bool = Field(False, description="In an account: keep functions that were made for it.")


class ProfileCost(BaseModel):
    """The expected cost of a profile, and its limit."""

    money: Prices
    likely_usd: Usd
    most_usd: Usd = Field(description="No ledger lets it cost more.")


class ProfiledSize(Shape):
    memory_mb: int
    picked: bool
    calls: int
    seconds_a_million_steps: float = Field(validation_alias="seconds")
    usd_a_million_steps: Usd = Field(validation_alias="picodollars")
    start_s: float | None
    slower_percent: int = Field(validation_alias="slower", description="Than the fastest.")
    dearer_percent: int = Field(validation_alias="dearer", description="Than the cheapest.")
    failure: str


class ProfileShape(BaseModel):
    """How much memory an actor should have, as measured."""

    id: int
    connection: str = Field(description="A connection's id, or simulated.")
    state: Literal["asked", "running", "done"]
    state_words: str
    sentence: str = Field(description="Its progress, the choice and its reason, or the error.")
    money: Prices
    asked_at: datetime
    environment: str
    memory_mb: list[int]
    environments_per_actor: int
    steps: int
    calls: int
    spent_usd: Usd
    limit_usd: Usd
    sizes: list[ProfiledSize]
    chosen_mb: int | None


@router.get(_ALL, summary="Memory profiles, newest first")
def list_profiles(
    project: EditorsProject, connection_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[ProfileShape]:
    """Of an account, or of the simulated cloud with `simulated` instead of a connection's id."""
    rows = queries.profiles_of(project, queries.account_in(project, connection_id))
    return newest_first(rows.select_related("connection"), "requested_at", cursor, limit, _profile)


@router.post(f"{_ALL}/cost", summary="What a memory profile would cost")
def estimate_profile_cost(project: EditorsProject, connection_id: str, plan: NewProfile) -> ProfileCost:
    """Nothing is made."""
    connection = queries.account_in(project, connection_id)
    usd = services.cost_of(connection, _plan(plan))
    return ProfileCost(money=_money(connection), likely_usd=usd.likely, most_usd=usd.most)


@router.post(_ALL, auth=Token("jobs"), response=202, summary="Profile memory")
def request_profile(
    request: HttpRequest,
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    connection_id: str,
    profile: NewProfile,
    idempotency_key: Key = "",
) -> ProfileShape:
    """The worker does it. Poll Location until its state is done. In an account it makes functions, as a set-up does,
    and requires an owner and the scope “manage”."""
    connection = queries.account_in(project, connection_id)
    if connection is not None:
        require_scope(request, TokenScope.MANAGE)
        project_of(request, project.slug, "owner")

    def make() -> MemoryProfile:
        return services.ask_for_profile(
            project=project,
            user=person,
            connection=connection,
            plan=_plan(profile),
            keep=profile.keep,
        )

    made = create_once(project, f"profile of {connection_id}", idempotency_key, profile, make, response)
    response["Location"] = reverse("api_v1:get_profile", args=[project.slug, connection_id, made])
    return _profile(queries.profile_in(project, connection, int(made)))


@router.get(
    f"{_ALL}/{{profile_id}}", response=(200, 304), summary="One memory profile, with its measurements"
)
def get_profile(project: EditorsProject, connection_id: str, profile_id: RowId) -> ProfileShape:
    profile = _profile_in(project, connection_id, profile_id)
    return _profile(profile)


@router.get(f"{_ALL}/{{profile_id}}/spec", summary="A job's spec with the chosen memory")
def get_profile_spec(project: EditorsProject, connection_id: str, profile_id: RowId) -> JobSpec:
    """The spec that the profile's page fills into the form. Launch it, or change it first."""
    profile = _profile_in(project, connection_id, profile_id)
    filled = into_the_form(profile)
    if not filled:
        why = f"This profile has chosen no size. {profile_status(profile, SYSTEM_CLOCK.now()).sentence}"
        raise ApiRefused(409, "no-choice", "No spec was made.", why, "Wait for its end, or profile again.")
    return begun_with(filled)[1]


def _profile_in(project: Project, connection_id: str, profile_id: int) -> MemoryProfile:
    return queries.profile_in(project, queries.account_in(project, connection_id), profile_id)


def _plan(wanted: NewProfile) -> ProfilingPlan:
    return ProfilingPlan.model_validate(wanted.model_dump(exclude={"keep"}))


def _money(connection: Connection | None) -> str:
    if connection is None:
        return "simulated"
    return "emulated" if connection.emulated else "actual"


def _profile(one: MemoryProfile) -> ProfileShape:
    status, plan, result = profile_status(one, SYSTEM_CLOCK.now()), one.parsed_plan, result_of(one)
    return ProfileShape(
        id=one.pk,
        connection=one.connection_id or queries.SIMULATED,
        state=one.state,
        state_words=status.word,
        sentence=status.sentence,
        money=_money(one.connection),
        asked_at=one.requested_at,
        environment=plan.environment.id,
        memory_mb=list(plan.memory_mb),
        environments_per_actor=plan.environments_per_actor,
        steps=plan.steps,
        calls=plan.calls,
        spent_usd=one.spent_picodollars,
        limit_usd=one.limit_picodollars,
        sizes=[ProfiledSize.of(row) for row in result.rows],
        chosen_mb=None if result.choice is None else result.choice.memory_mb,
    )
