"""Set-up and removal: a page requests them, the worker does them step by step, and the row reports each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from cloud.accounts.checks import scrubbed
from cloud.accounts.provision import aws, aws_removal, azure
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.steps import SetUpStep
from cloud.actor import bundle
from cloud.actor.bundle import Bundle
from cloud.platforms.azure.clients import AzureClients
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import connection_check, decrypt, queries
from webapp.connections.models import SECRET_FIELDS, Aim, CheckState, Connection, SetUp
from webapp.connections.services import ConnectionRefused

_POLL_S, _EMULATED_POLL_S = 2.0, 0.2
_UNFORESEEN = "An unexpected error ({}) ended it."


@transaction.atomic
def request_set_up(
    *, connection: Connection, memory_mb: Sequence[int], bucket: bool = False, clock: Clock = SYSTEM_CLOCK
) -> SetUp:
    """Request functions of these sizes beside the existing ones, and a bucket if `bucket`. The worker makes them."""
    made = _request(connection, Aim.SET_UP, clock)
    made.requested_mb = sorted({*made.requested_mb, *memory_mb})
    made.requested_bucket = made.requested_bucket or bucket
    made.save()
    return made


@transaction.atomic
def request_containers(*, connection: Connection, image: str, clock: Clock = SYSTEM_CLOCK) -> SetUp:
    """Request a check whether jobs can run this image there. Until it is done, no job starts with another image."""
    made = _request(connection, Aim.SET_UP, clock)
    made.image, made.ready_image = image, ""
    made.save()
    return made


@transaction.atomic
def request_removal(*, connection: Connection, clock: Clock = SYSTEM_CLOCK) -> SetUp:
    """Request the removal of everything that was made there. No job starts on it from now on.

    ConnectionRefused if jobs need it."""
    made = _request(connection, Aim.TAKE_DOWN, clock)
    needed = list(queries.unfinished_jobs(connection).values_list("name", flat=True)[:4])
    if needed:
        shown = ", ".join(needed[:3]) + (" and others" if len(needed) > 3 else "")
        what = "functions" if connection.cloud == "aws" else "containers"
        raise ConnectionRefused(f"The {what} of {connection.name} are needed by {shown}. Stop these first.")
    if queries.others_need_its_functions(connection):
        raise ConnectionRefused(
            f"Jobs of another connection run on the functions of {connection.name}: both are from release 0.1, which"
            " gave all functions of an account the same names. Remove them once those jobs are over."
        )
    made.ready_mb, made.ready_bucket, made.ready_image = [], False, ""
    made.save()
    return made


@transaction.atomic
def claim_for_profile(*, connection: Connection, memory_mb: list[int], clock: Clock = SYSTEM_CLOCK) -> SetUp:
    """Claim the account for a profile, which makes functions of these sizes and returns the account afterwards."""
    made = _claim(connection, Aim.PROFILE, clock)
    made.requested_mb = sorted({*made.requested_mb, *memory_mb})
    made.save()
    return made


def _request(connection: Connection, aim: Aim, clock: Clock) -> SetUp:
    """The claimed row. The worker gets a message after the commit."""
    made = _claim(connection, aim, clock)
    number = made.number
    task = "webapp.connections.tasks.set_up_connection"
    transaction.on_commit(lambda: send_hint(task, connection.pk, number), robust=True)
    return made


def _claim(connection: Connection, aim: Aim, clock: Clock) -> SetUp:
    """The row of a new request, not saved yet. Only one runs at a time: two would undo each other's steps."""
    locked = Connection.objects.select_for_update().get(pk=connection.pk)
    if not locked.has_identity:
        raise ConnectionRefused("Finish the earlier steps first.")
    made = queries.set_up_of(locked) or SetUp(connection=locked, aim=aim, since=clock.now())
    if queries.is_under_way(made.state) and not queries.is_given_up(made.state, made.since, clock.now()):
        raise ConnectionRefused("This is already in progress.")
    made.aim, made.state, made.since = aim, CheckState.REQUESTED, clock.now()
    made.number += 1
    made.steps = []
    return made


def run(connection_id: str, number: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Do the request of that number. Does nothing if a newer one replaced it or if it is running already."""
    mine = SetUp.objects.filter(connection_id=connection_id, number=number)
    if not mine.filter(state=CheckState.REQUESTED).update(state=CheckState.RUNNING, since=clock.now()):
        return
    made = mine.select_related("connection__project").get()
    running = mine.filter(state=CheckState.RUNNING)
    steps: list[dict[str, Any]] = []
    for step in _steps(made):
        steps.append(step)
        if not running.update(steps=steps, since=clock.now()):
            return
    running.update(state=CheckState.DONE, since=clock.now(), **_outcome(made, steps))
    if any(check.get("of_set_up") for check in (made.connection.test_report or {}).get("checks", [])):
        # The last test looked at what has changed now.
        connection_check.request_test(connection=made.connection, clock=clock)


def _outcome(made: SetUp, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The row's fields after these steps: what the account contains, as far as known."""
    if any(step["state"] == "missing" for step in steps):
        return {}
    if made.aim == Aim.SET_UP:
        return {
            "ready_mb": made.requested_mb,
            "ready_bucket": made.requested_bucket,
            "ready_image": made.image,
        }
    return {
        "requested_mb": [],
        "ready_mb": [],
        "requested_bucket": False,
        "ready_bucket": False,
        "image": "",
        "ready_image": "",
    }


@sensitive_variables()
def _steps(made: SetUp) -> Iterator[dict[str, Any]]:
    """Each step as the row stores it, without secrets. Never raises."""
    connection = made.connection
    try:
        steps = _steps_on_azure(made) if connection.cloud == "azure" else _steps_on_aws(made)
        secrets = [decrypt.secret(connection, field).reveal() for field in SECRET_FIELDS[connection.kind]]
    except decrypt.CannotOpen as error:
        yield SetUpStep("Stored credentials", "missing", str(error)).as_dict()
        return
    try:
        for step in steps:
            yield scrubbed(step.as_dict(), secrets)
    except Exception as error:  # only its type: its text may contain anything
        words = _UNFORESEEN.format(type(error).__name__)
        yield SetUpStep(
            "It did not finish", "missing", words, "Try again: the next set-up finds what was made."
        ).as_dict()


@sensitive_variables()
def _steps_on_aws(made: SetUp) -> Iterator[SetUpStep]:
    connection = made.connection
    opened, owner = decrypt.aws_connection(connection).open(), owner_of(connection)
    if made.aim != Aim.SET_UP:
        return aws_removal.remove(opened, owner, made.requested_mb, bucket=made.requested_bucket)
    packed = partial(package, connection.emulated)
    return aws.set_up(opened, owner, made.requested_mb, packed, bucket=made.requested_bucket)


@sensitive_variables()
def _steps_on_azure(made: SetUp) -> Iterator[SetUpStep]:
    connection = made.connection
    clients = AzureClients(decrypt.azure_connection(connection))
    poll_s = _EMULATED_POLL_S if connection.emulated else _POLL_S
    if made.aim != Aim.SET_UP:
        return azure.remove(clients, connection.pk, poll_s=poll_s)
    return azure.set_up(clients, connection.pk, connection.project.slug, made.image, poll_s=poll_s)


def owner_of(connection: Connection) -> Owner:
    """The owner tags of everything that is made for this connection."""
    return Owner(settings.STARLING_BASE_URL, connection.pk, connection.project.slug)


@lru_cache(2)
def package(emulated: bool) -> Bundle:
    """The code package. An emulator gives its functions this machine's copies of the packages in it."""
    return bundle.thin() if emulated else bundle.light()
