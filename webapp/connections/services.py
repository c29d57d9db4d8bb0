"""Writes to connections: create, set an identity, remove. Each is one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import IntegrityError, transaction
from django.views.decorators.debug import sensitive_variables

from cloud.accounts.provision.permissions import prefix_of
from cloud.platforms.model import Cloud
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import key_ring, queries
from webapp.connections.models import (
    PLAIN_FIELDS,
    SECRET_FIELDS,
    CheckState,
    Connection,
    ConnectionKind,
    SealedSecret,
    SetUp,
    new_connection_id,
    new_external_id,
)
from webapp.connections.sealing import Secret, seal
from webapp.http.refusals import ActionRefused


class ConnectionRefused(ActionRefused):
    """The change is refused; the text says why, for the page."""


def is_emulated(cloud: Cloud) -> bool:
    """Whether this installation reaches an emulator instead of that cloud."""
    return bool(settings.STARLING_AWS_ENDPOINT if cloud == "aws" else settings.STARLING_AZURE_ENDPOINT)


def create_connection(
    *,
    project: Project,
    user: User,
    kind: str,
    name: str,
    region: str,
    clock: Clock = SYSTEM_CLOCK,
    **places: str,
) -> Connection:
    """A new connection without an identity. A role's connection has the external id for that role."""
    chosen, key = ConnectionKind(kind), new_connection_id()
    try:
        with transaction.atomic():
            return Connection.objects.create(
                id=key,
                prefix=prefix_of(key),
                project=project,
                kind=chosen,
                name=name,
                region=region,
                emulated=is_emulated(chosen.cloud),
                external_id=new_external_id() if chosen == ConnectionKind.AWS_ROLE else "",
                created_by=user,
                created_at=clock.now(),
                **places,
            )
    except IntegrityError:
        raise ConnectionRefused(f"This project has a connection named {name} already.") from None


@sensitive_variables()
def create_with_identity(
    *,
    project: Project,
    user: User,
    plain: Mapping[str, str],
    secrets: Mapping[str, Secret],
    clock: Clock = SYSTEM_CLOCK,
    **made: str,
) -> Connection:
    """Create a connection with its identity in one transaction. KeysUnusable if the secret cannot be sealed."""
    # Held until the commit: otherwise a rotation could remove the key before a stored row needs it.
    with key_ring.locked(), transaction.atomic():
        connection = create_connection(project=project, user=user, clock=clock, **made)
        return set_identity(connection=connection, plain=plain, secrets=secrets, clock=clock)


@sensitive_variables()
def set_identity(
    *,
    connection: Connection,
    plain: Mapping[str, str],
    secrets: Mapping[str, Secret],
    clock: Clock = SYSTEM_CLOCK,
) -> Connection:
    """Who we are in that account, whole: every plain field and every secret of the kind.

    What was tested is void, and what was set up has to be looked at again: it may be another account.
    """
    if set(plain) != set(PLAIN_FIELDS[connection.kind]) or set(secrets) != set(
        SECRET_FIELDS[connection.kind]
    ):
        raise ValueError(f"an identity of {connection.kind} is given whole or not at all")
    with key_ring.locked(), transaction.atomic():
        locked = Connection.objects.select_for_update().get(pk=connection.pk)
        key = key_ring.ring().first
        for field, secret in secrets.items():
            sealed = seal(secret, locked.place(field), key)
            SealedSecret.objects.update_or_create(
                connection=locked,
                field=field,
                defaults={
                    "key_id": sealed.key_id,
                    "wrapped_key": sealed.wrapped_key,
                    "ciphertext": sealed.ciphertext,
                    "hint": secret.hint,
                    "set_at": clock.now(),
                },
            )
        void = {"account_id": "", "test_state": CheckState.NEVER, "test_report": None, "test_since": None}
        for field, value in {**plain, **void, "test_no": locked.test_no + 1}.items():
            setattr(locked, field, value)
        locked.save()
        SetUp.objects.filter(connection=locked).update(ready_mb=[], ready_bucket=False, ready_image="")
    return locked


@transaction.atomic
def remove_connection(*, connection: Connection) -> None:
    """Delete the connection and its secrets. ConnectionRefused if unfinished jobs or warm functions need it."""
    locked = Connection.objects.select_for_update().get(pk=connection.pk)
    going_on = list(queries.unfinished_jobs(locked).values_list("name", flat=True)[:4])
    if going_on:
        shown = ", ".join(going_on[:3]) + (" and others" if len(going_on) > 3 else "")
        raise ConnectionRefused(
            f"{locked.name} is needed by {shown}. Stop these jobs first: without it, what runs for them in the cloud"
            " could not be stopped."
        )
    if locked.holdings.filter(ended_at=None).exists():
        raise ConnectionRefused(
            f"Resources of Starling still run in {locked.name}, and cannot be removed without it. Their removal takes"
            " seconds; then remove the connection."
        )
    locked.delete()
