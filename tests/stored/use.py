"""Uses the stored installation as its people do, in a process of its own; prints each fault on a line.

`python -m tests.stored.use FACTS EVERY`, with STARLING_DATA and DATABASE_URL naming the installation, visits one in
EVERY of its pages. Models are found by their tables, so that they may be called anything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.test import Client


def faults(facts: dict[str, Any], every: int) -> Iterator[str]:
    """A sentence for each fault."""
    yield from _commands()
    yield from _secrets(facts["secrets_sha256"])
    yield from _unlike(_client(), facts["signed_out"], 200)
    earlier = _client()
    earlier.cookies[settings.SESSION_COOKIE_NAME] = facts["session"]
    if earlier.get("/account/").status_code != 200:
        yield "A session of before opens nothing any more."
    program = _client(HTTP_AUTHORIZATION=f"Bearer {facts['api_key']}")
    yield from _unlike(program, [f"/api/v1/projects/{facts['project']}/jobs"], 200)
    person = _client()
    person.post("/accounts/login/", {"login": facts["email"], "password": facts["password"]})
    if settings.SESSION_COOKIE_NAME not in person.cookies:
        yield f"{facts['email']} cannot sign in."
    yield from _unlike(person, facts["pages"][::every], 200)
    yield from _renamed()
    yield from _unlike(person, facts["gone"], 410)


def _commands() -> Iterator[str]:
    """What `verify` finds in the rows, and models that no migration describes."""
    for name, options in (("verify", {}), ("makemigrations", {"check_changes": True, "dry_run": True})):
        said = StringIO()
        try:
            call_command(name, stdout=said, stderr=said, **options)
        except SystemExit:
            yield f"{name}: {said.getvalue()}"


def _client(**headers: str) -> Client:
    return Client(SERVER_NAME="localhost", **headers)


def _unlike(client: Client, paths: list[str], status: int) -> Iterator[str]:
    """Paths that answer anything else after all redirects. A redirect to the sign-in page is a fault too."""
    for path in paths:
        try:
            answer = client.get(path, follow=True)
        except Exception as error:  # each kind is a fault
            yield f"{path} raises {type(error).__name__}: {error}"
            continue
        led_to = answer.redirect_chain[-1][0] if answer.redirect_chain else path
        if answer.status_code != status or (led_to.startswith("/accounts/login/") and led_to != path):
            yield f"{path} answers {answer.status_code} at {led_to}."


def _renamed() -> Iterator[str]:
    """Connections that would look for other functions, roles or logs than the account has of them."""
    for model in apps.get_models():
        if model._meta.db_table == "credentials_connection":
            for row in model._default_manager.all():
                if row.prefix != "starling":
                    yield f"The names of connection {row.pk} begin with {row.prefix}."


def _secrets(expected: dict[str, dict[str, str]]) -> Iterator[str]:
    """Sealed secrets that cannot be opened, or that open to another text."""
    sealed = {model._meta.db_table: model for model in apps.get_models() if model._meta.db_table in expected}
    for table, digests in expected.items():
        rows = {str(row.pk): row for row in sealed[table]._default_manager.all()}
        for number, digest in digests.items():
            try:
                opened = _opened(rows[number])
            except Exception as error:  # each kind is a fault
                yield f"{table} {number} does not open: {type(error).__name__}: {error}"
                continue
            if sha256(opened.encode()).hexdigest() != digest:
                yield f"{table} {number} opens to something else."


def _opened(row: Any) -> str:
    """The secret, opened by the app that seals: the one that the abstract row comes from."""
    base = next(one for one in type(row).__mro__ if one.__name__ == "SealedRow")
    app = base.__module__.rpartition(".")[0]
    key_ring, sealing = import_module(f"{app}.key_ring"), import_module(f"{app}.sealing")
    return str(sealing.unseal(row.sealed(), row.place(), key_ring.ring().by_id).reveal())


if __name__ == "__main__":
    django.setup()
    for fault in faults(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2])):
        print(fault)
