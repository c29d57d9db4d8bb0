"""Memory profiles of an account, or of the simulated cloud: price, request, poll, and use."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from cloud.profiling_runs import Plan
from webapp.accounts.models import Project
from webapp.api.auth import Token, project_of, require_scope
from webapp.api.idempotency import create_once
from webapp.api.models import Scope
from webapp.api.paging import Cursor, Limit, Page, RowId, newest_first
from webapp.api.problems import Refused
from webapp.api.router import ApiRouter, EditorsProject, Person
from webapp.api.routes.jobs import Key
from webapp.api.schemas.policies import NewProfile, ProfileCost, ProfiledSize, ProfileShape
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import exact_usd
from webapp.profiling import queries, services
from webapp.profiling.models import MemoryProfile
from webapp.profiling.text import Row, into_the_form, profile_standing, result_of

router = ApiRouter(tags=["memory profiles"])
_ALL = "/projects/{slug}/connections/{connection_id}/profiles"


@router.get(_ALL, response=Page[ProfileShape], summary="Memory profiles, newest first")
def list_profiles(
    project: EditorsProject, connection_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[ProfileShape]:
    """Of an account, or of the simulated cloud with `simulated` instead of a connection's id."""
    rows = queries.profiles_of(project, queries.account_in(project, connection_id))
    return newest_first(rows.select_related("connection"), "asked_at", cursor, limit, _profile)


@router.post(f"{_ALL}/cost", response=ProfileCost, summary="What a memory profile would cost")
def cost(project: EditorsProject, connection_id: str, plan: NewProfile) -> ProfileCost:
    """Nothing is made."""
    connection = queries.account_in(project, connection_id)
    found = services.cost_of(connection, _plan(plan))
    return ProfileCost(
        money=_money(connection), likely_usd=exact_usd(found.likely), most_usd=exact_usd(found.most)
    )


@router.post(_ALL, auth=Token("jobs"), response={202: ProfileShape}, summary="Profile memory")
def ask_for_profile(
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
        require_scope(request, Scope.MANAGE)
        project_of(request, project.slug, "owner")

    def make() -> MemoryProfile:
        return services.ask_for_profile(
            project=project,
            user=person,
            connection=connection,
            plan=_plan(profile),
            keep=profile.keep,
        )

    made = create_once(project, f"profile of {connection_id}", idempotency_key, profile, make)
    response["Location"] = reverse("api_v1:get_profile", args=[project.slug, connection_id, made])
    return _profile(queries.profile_in(project, connection, int(made)))


@router.get(
    f"{_ALL}/{{profile_id}}",
    response={200: ProfileShape, 304: None},
    url_name="get_profile",
    summary="One memory profile, with its measurements",
)
def get_profile(project: EditorsProject, connection_id: str, profile_id: RowId) -> ProfileShape:
    found = _profile_in(project, connection_id, profile_id)
    return _profile(found)


@router.get(f"{_ALL}/{{profile_id}}/spec", response=JobSpec, summary="A job's spec with the chosen memory")
def use_profile(project: EditorsProject, connection_id: str, profile_id: RowId) -> JobSpec:
    """The spec that the profile's page fills into the form. Launch it, or change it first."""
    found = _profile_in(project, connection_id, profile_id)
    filled = into_the_form(found)
    if not filled:
        why = f"This profile has chosen no size. {profile_standing(found, SYSTEM_CLOCK.now()).sentence}"
        raise Refused(409, "no-choice", "No spec was made.", why, "Wait for its end, or profile again.")
    return begun_with(filled)[1]


def _profile_in(project: Project, connection_id: str, profile_id: int) -> MemoryProfile:
    return queries.profile_in(project, queries.account_in(project, connection_id), profile_id)


def _plan(wanted: NewProfile) -> Plan:
    return Plan.model_validate(wanted.model_dump(exclude={"keep"}))


def _money(connection: Connection | None) -> str:
    if connection is None:
        return "simulated"
    return "emulated" if connection.emulated else "actual"


def _profile(one: MemoryProfile) -> ProfileShape:
    status, plan, result = profile_standing(one, SYSTEM_CLOCK.now()), one.parsed_plan, result_of(one)
    return ProfileShape(
        id=one.pk,
        connection=one.connection_id or queries.SIMULATED,
        state=one.state,
        state_words=status.word,
        sentence=status.sentence,
        money=_money(one.connection),
        asked_at=one.asked_at,
        environment=plan.environment.id,
        memory_mb=list(plan.memory_mb),
        environments_per_actor=plan.environments_per_actor,
        steps=plan.steps,
        calls=plan.calls,
        spent_usd=exact_usd(one.spent_picodollars),
        limit_usd=exact_usd(one.limit_picodollars),
        sizes=[_size(row) for row in result.rows],
        chosen_mb=None if result.choice is None else result.choice.memory_mb,
    )


def _size(row: Row) -> ProfiledSize:
    return ProfiledSize(
        memory_mb=row.memory_mb,
        picked=row.picked,
        calls=row.calls,
        seconds_a_million_steps=row.seconds,
        usd_a_million_steps=exact_usd(row.picodollars),
        start_s=row.start_s,
        slower_percent=row.slower,
        dearer_percent=row.dearer,
        failure=row.failure,
    )
