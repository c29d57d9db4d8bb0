"""Azure Container Instances on a real subscription: each test settles a row of docs/clouds.md.

Containers here never reach a gateway: a site whose address Azure can reach is not needed. Three groups of one core and
one gigabyte stand for a minute or two.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from cloud.accounts.check_clients import azure_clients
from cloud.accounts.checks import Findings
from cloud.accounts.connections import AzureConnection, AzurePrincipal
from cloud.accounts.provision.azure import remove, set_up
from cloud.accounts.provision.steps import SetUpStep
from cloud.accounts.register import group_name, run_tag, tags
from cloud.actor.protocol import TOKEN_VARIABLE
from cloud.actor.puller import GONE
from cloud.platforms.azure.billable_resources import AzureFinder
from cloud.platforms.azure.checks import AzureQuestion, check_azure
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.groups import AzureGroups, Container, ListedGroup, NotNow, Refused
from tests.cloud.azure import containers

_NAMED = "STARLING_TEST_AZURE_"
_DEPLOYMENT, _OWNER = "con_contract0", "contract-tests"
_SHOWS_WITHIN_S = 30.0
_START_S = 300.0
# It says who it is when it starts, so that a second start would show, and stays a while.
_SAYS_WHO = "import time, uuid; print('began', uuid.uuid4(), flush=True); time.sleep(900)"
_BEGAN = re.compile(r"began (\S+)")


@dataclass(frozen=True)
class Place:
    """A resource group to test, and the image that runs there. `poll_s`: how often it may be polled."""

    connection: AzureConnection
    image: str
    poll_s: float

    @property
    def groups(self) -> AzureGroups:
        return AzureGroups(AzureClients(self.connection))

    def name(self, number: int) -> str:
        return group_name(self.connection.prefix, f"contract-{uuid.uuid4().hex[:8]}", 1, number)

    def container(self, command: tuple[str, ...], **secrets: str) -> Container:
        return Container("actor-1", self.image, command, 1, 1, {}, secrets)

    def worn(self, expires_unix_s: float) -> dict[str, str]:
        run = run_tag("contract", 1)
        return tags(deployment=_DEPLOYMENT, run=run, owner=_OWNER, expires_unix_s=expires_unix_s)

    def create(self, name: str, container: Container) -> str:
        """Ask for it until Azure has taken it."""
        while True:
            try:
                return self.groups.create(name, [container], self.worn(time.time() + 900))
            except NotNow as later:
                time.sleep(later.wait_s)

    def until(self, true: Callable[[], bool], patience_s: float) -> bool:
        end_s = time.monotonic() + patience_s
        while not true():
            if time.monotonic() > end_s:
                return False
            time.sleep(self.poll_s)
        return True


@contextmanager
def _named() -> Iterator[Place]:
    """The subscription that the environment names; an emulated one where it names none."""
    reported = {
        name.removeprefix(_NAMED): value for name, value in os.environ.items() if name.startswith(_NAMED)
    }
    if not reported:
        with containers.subscription() as (_, demo):
            yield Place(demo.connection, demo.image, 0.1)
        return
    access = AzurePrincipal(reported["TENANT_ID"], reported["CLIENT_ID"], reported["CLIENT_SECRET"])
    connection = AzureConnection(
        access, reported["SUBSCRIPTION_ID"], reported["RESOURCE_GROUP"], reported.get("REGION", "eastus")
    )
    yield Place(connection, reported["IMAGE"], 3.0)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with _named() as named:
        try:
            yield named
        finally:
            left = list(remove(AzureClients(named.connection), _DEPLOYMENT, poll_s=named.poll_s))
        wrong = [step for step in left if step.state == "missing"]
        assert not wrong, f"something of ours may be left in the resource group: {wrong}"
        found = AzureFinder(AzureClients(named.connection)).found()
        assert [one.name for one in found if one.deployment == _DEPLOYMENT] == []


def test_the_roles_that_are_shown_are_enough(place: Place) -> None:
    connection, access = place.connection, place.connection.access
    where = (connection.region, connection.subscription_id, connection.resource_group)
    findings = Findings(connection.region)
    question = AzureQuestion(*where, access.tenant_id, access.client_id)
    check_azure(azure_clients(connection), question, findings)
    report = findings.report()
    assert [check for check in report.checks if check.ok is False and not check.optional] == []
    assert {quota.unit for quota in report.quotas} == {"groups", "cores"}


def test_a_set_up_runs_the_image_with_a_command_of_ours_and_leaves_nothing(place: Place) -> None:
    steps: dict[str, SetUpStep] = {}
    for step in set_up(AzureClients(place.connection), _DEPLOYMENT, _OWNER, place.image, poll_s=place.poll_s):
        steps[step.name] = step
    assert [step for step in steps.values() if step.state == "missing"] == []
    assert "ended as it" in steps["One container"].words
    assert steps["The container's group"].state == "gone"


def test_a_repeated_create_makes_one_group_that_is_listed_soon_and_starts_once(place: Place) -> None:
    groups, name = place.groups, place.name(1)
    sleeper = place.container(("python", "-c", _SAYS_WHO))
    first = place.create(name, sleeper)
    assert place.until(lambda: name in groups.all(), _SHOWS_WITHIN_S), "it does not show in the list"
    assert place.until(lambda: bool(_BEGAN.search(groups.log(name, "actor-1"))), _START_S)
    before = _BEGAN.findall(groups.log(name, "actor-1"))
    assert place.create(name, sleeper) == first
    time.sleep(10 * place.poll_s)
    assert _BEGAN.findall(groups.log(name, "actor-1")) == before
    looked = groups.status(name)
    assert looked is not None
    assert not looked.ended
    _wears_and_goes(place, groups.all(), name)


def _wears_and_goes(place: Place, shown: Mapping[str, ListedGroup], name: str) -> None:
    """Its tags name its owner and its expiry and can be renewed, and it can be deleted."""
    groups, finder = place.groups, AzureFinder(AzureClients(place.connection))
    assert shown[name].tags["starling:run"] == run_tag("contract", 1)
    later = float(int(time.time()) + 1800)
    groups.set_tags(name, place.worn(later))
    (found,) = [one for one in finder.found() if one.name == name]
    assert (found.deployment, found.expires_unix_s) == (_DEPLOYMENT, later)
    finder.end(found)
    assert place.until(lambda: name not in groups.all(), 120.0), "it was deleted and is still listed"
    finder.end(found)


@pytest.mark.slow
def test_an_actor_whose_gateway_is_gone_ends_by_itself(place: Place) -> None:
    """The dead-man time, where the container's own network decides what a gateway that is gone looks like."""
    groups, name = place.groups, place.name(2)
    command = ("python", "-m", "cloud.actor.puller", "--gateway", "https://gateway.invalid")
    limits = ("--live", "120", "--unreachable", "2")
    place.create(name, place.container((*command, *limits), **{TOKEN_VARIABLE: secrets.token_urlsafe(32)}))

    def ended() -> bool:
        looked = groups.status(name)
        return looked is not None and looked.ended

    assert place.until(ended, _START_S)
    looked = groups.status(name)
    assert looked is not None
    assert looked.exit_codes == (GONE,)
    assert "goodbye" in groups.log(name, "actor-1")
    assert name not in [one.name for one in AzureFinder(AzureClients(place.connection)).found()]


def test_an_image_that_is_not_there_is_explained(place: Place) -> None:
    """By the refusal of the create, or by a group that failed."""
    name = place.name(3)
    wrong = replace(
        place.container(("python", "--version")), image=f"{place.image.rpartition(':')[0]}-none:0"
    )
    if not place.connection.emulated:
        assert wrong.image != place.image
    else:
        wrong = replace(wrong, image="registry.example/other:1")
    try:
        place.create(name, wrong)
    except Refused as refusal:
        reported = str(refusal)
    else:
        assert place.until(lambda: place.groups.all()[name].provisioning == "failed", _START_S)
        reported = "a missing image"
    assert "image" in reported
    assert "answered with" not in reported


def test_a_wrong_secret_is_explained(place: Place) -> None:
    access = replace(place.connection.access, client_secret=f"{uuid.uuid4()}")
    clients = AzureClients(replace(place.connection, access=access))
    step = next(set_up(clients, _DEPLOYMENT, _OWNER, place.image))
    assert (step.name, step.state) == ("Sign-in", "missing")
    assert "secret" in step.words + step.fix
