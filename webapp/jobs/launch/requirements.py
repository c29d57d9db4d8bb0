"""What a job on a platform requires before it may begin, and what the rows of several platforms share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.platforms.model import Cloud
from cloud.platforms.options import PlatformOptions
from training.tasks.training import Training
from webapp.accounts.models import Project
from webapp.connections import decrypt, queries
from webapp.connections.models import Connection, SetUp
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import SpecProblem, at_connection
from webapp.jobs.spec import JobSpec

NOT_TESTED = "{} has not been tested. Test it under Clouds, then launch."

_NAMES: dict[Cloud, str] = {"aws": "AWS", "azure": "Azure"}
_KIND = "platform.kind"
LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}
REGION = "platform.region"
PRICE_IT = (
    "Choose a region or machine that has one, or add a row for it to cloud/money/prices where Starling is"
    " installed."
)
"""What to do if the price book has no price."""


class Requirements:
    """Nothing is required: the platform needs no account and reaches nothing. Others have rows."""

    credentials_words = "None needed: nothing runs in your account."

    def unsafe(self, spec: JobSpec) -> SpecProblem | None:
        """Return why the job may never run there. Its process asks again when it starts."""
        return None

    def obstacle(self, spec: JobSpec) -> SpecProblem | None:
        """Return why the job cannot run there, as far as that is known without an account."""
        return None

    def obstacles(self, project: Project, spec: JobSpec) -> Iterable[SpecProblem]:
        """Return what the project or this site lacks, once there is no `obstacle`."""
        return ()

    def missing_credentials(self, spec: JobSpec, problems: Sequence[SpecProblem]) -> Sequence[SpecProblem]:
        """Return the problems of the check-list's first row, for a platform without connections."""
        return ()

    def limit_words(self, connection: Connection) -> str:
        """Return what the account allows at once, to be added to the row of the quota."""
        return ""

    def follows(self, made: SetUp | None, spec: JobSpec) -> dict[str, Any]:
        """Return the options that follow from what is set up in the connection's account."""
        return {}


class AccountRequirements(Requirements, ABC):
    """A platform in an account: a connection of the project that was tested, and what its cloud requires."""

    def obstacles(self, project: Project, spec: JobSpec) -> Iterable[SpecProblem]:
        connection, cloud = connection_of(project, spec), spec.platform.cloud
        assert cloud is not None
        if connection is None:
            return [
                at_connection(f"choose one of this project's connections to {_NAMES[cloud]}, under Clouds.")
            ]
        if connection.cloud != cloud:
            return [at_connection(f"{connection.name} is not a connection to {_NAMES[cloud]}.")]
        return list(_not_ready(connection)) or list(self.of_account(connection, spec, spec.platform))

    @abstractmethod
    def of_account(self, connection: Connection, spec: JobSpec, options: Any) -> Iterator[SpecProblem]:
        """Yield what is missing in the account, as its last test and set-up say. `options` are the platform's."""


def connection_of(project: Project, spec: JobSpec) -> Connection | None:
    """Return the project's connection that the spec names; None if there is none."""
    if spec.platform.cloud is None:
        return None
    named = getattr(spec.platform, "connection", "")
    return queries.connections_of(project).filter(pk=named).first()


def _not_ready(connection: Connection) -> Iterator[SpecProblem]:
    """Return what is missing for any job on the connection, only the first thing to do."""
    try:
        decrypt.require_usable(connection)
    except decrypt.CannotOpen as error:
        yield at_connection(str(error))
        return
    report = connection.test_report
    if report is None:
        yield at_connection(NOT_TESTED.format(connection.name))
    elif not report["ok"]:
        yield at_connection(
            f"the last test of {connection.name} found something missing. Its page under Clouds says what to do."
        )


def free_quota(connection: Connection, name: str) -> int | None:
    for quota in (connection.test_report or {}).get("quotas", []):
        if quota["name"] == name:
            return max(0, int(quota["limit"]) - int(quota["used"] or 0))
    return None


def too_many_learners(training: Training, room: int, actor: str) -> SpecProblem | None:
    """Return the problem of more learners than actors' places at once; an `actor` is called so there."""
    loop, path = training.loop.gradients, "training.loop.learners"
    if loop is None or loop.where != "actor" or loop.learners <= room:
        return None
    return SpecProblem(
        path,
        f"Learners at most ({path}): the job asks for {loop.learners:,}, and no more than {plural(room, actor)} may"
        f" run at once. Ask for {room:,} at most.",
    )


def missing_price(options: PlatformOptions, memory_mb: int) -> str:
    """Return that no budget can be kept, because something has no price; empty if everything has one."""
    try:
        options.tariff(PriceBook.load(), memory_mb)
    except (UnknownSku, PriceError) as error:
        return f"without a price no budget can be kept, and {error}."
    return ""


def is_loopback() -> bool:
    return urlsplit(settings.STARLING_BASE_URL).hostname in LOOPBACK_HOSTS


def unsafe_address() -> list[SpecProblem]:
    """Return why no machine may call this site."""
    if is_loopback() or urlsplit(settings.STARLING_BASE_URL).scheme == "https":
        return []
    sentence = (
        f"Platform ({_KIND}): machines call at {settings.STARLING_BASE_URL}, which is not encrypted, and their token"
        " would be readable on the way. The operator puts this site behind https and sets"
        " STARLING_BASE_URL to that address."
    )
    return [SpecProblem(_KIND, sentence)]
