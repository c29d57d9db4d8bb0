"""Setting an account up and taking everything away, over the real SDK; the emulator's own listing is the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from cloud.accounts.connections import AwsConnection, AwsKeys
from cloud.accounts.provision.aws import FUNCTION_ROLE, set_up
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.aws_removal import remove, remove_sizes
from cloud.accounts.provision.permissions import prefix_of
from cloud.accounts.provision.steps import SetUpStep
from cloud.actor.bundle import Bundle, BundleError
from cloud.platforms.aws import functions as aws_functions
from cloud.platforms.aws.functions import function_name, log_group
from emulator.aws.account import Policy
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud.aws.lambdas import thin

OWNER = Owner("https://starling.example.org", "con_aaaaaaaaaa", "lab")
OTHER = Owner("https://starling.example.org", "con_bbbbbbbbbb", "class")
SIZES = (1769, 3008)
NAMES = [function_name("starling", size) for size in SIZES]


def _set_up(
    connection: AwsConnection,
    owner: Owner = OWNER,
    sizes: tuple[int, ...] = SIZES,
    bundle: Bundle | None = None,
) -> list[SetUpStep]:
    return list(set_up(connection.open(), owner, sizes, lambda: bundle or thin(), patience_s=0))


def _remove(connection: AwsConnection, owner: Owner = OWNER, sizes: tuple[int, ...] = ()) -> list[SetUpStep]:
    return list(remove(connection.open(), owner, sizes, patience_s=0))


def _with_own_names(demo: DemoAccount, owner: Owner = OWNER) -> AwsConnection:
    """The connection as it is made today; older ones share the names that begin with `starling-`."""
    return replace(demo.by_role, prefix=prefix_of(owner.connection))


def _states(steps: list[SetUpStep]) -> list[str]:
    return [step.state for step in steps]


def test_a_set_up_makes_everything_and_a_second_one_changes_nothing(
    aws: AwsEmulator, demo: DemoAccount
) -> None:
    first = _set_up(demo.by_role)
    assert [step.name for step in first] == [
        "Account",
        "Package",
        FUNCTION_ROLE,
        f"Function {NAMES[0]}",
        f"Tags of {NAMES[0]}",
        f"Log of {NAMES[0]}",
        f"Function {NAMES[1]}",
        f"Tags of {NAMES[1]}",
        f"Log of {NAMES[1]}",
    ]
    assert _states(first) == ["done"] * 3 + ["made"] * 6
    made = {one.name: one for one in aws.functions.alive()}
    revisions = {name: one.latest.revision for name, one in made.items()}
    assert [(one.latest.memory_mb, one.latest.timeout_s) for one in made.values()] == [
        (1769, 900),
        (3008, 900),
    ]
    assert made[NAMES[0]].tags == OWNER.tags
    assert {aws.logs.groups[log_group(name)].retention_days for name in NAMES} == {7}
    assert set(_states(_set_up(demo.by_keys))) == {"done"}
    assert {one.name: one.latest.revision for one in aws.functions.alive()} == revisions


def test_a_half_done_set_up_is_completed(aws: AwsEmulator, demo: DemoAccount) -> None:
    own = _with_own_names(demo)
    first, second = (function_name(own.prefix, size) for size in SIZES)
    aws_functions.deploy(own.open().client("lambda"), first, thin(), demo.actor_role, 1024, timeout_s=30)
    reported = {step.name: step for step in _set_up(own)}
    assert reported[f"Function {first}"].state == "made"
    assert "set: 1,769 MB" in reported[f"Function {first}"].words
    assert reported[f"Tags of {first}"].state == reported[f"Log of {first}"].state == "made"
    assert reported[f"Function {second}"].words.startswith("Created")
    assert aws.functions.get(first).tags == OWNER.tags


def test_removing_leaves_nothing_and_may_be_repeated(aws: AwsEmulator, demo: DemoAccount) -> None:
    _set_up(demo.by_role)
    # One size is known here; the other is found by its tags.
    steps = _remove(demo.by_role, sizes=(1769,))
    assert [step.name for step in steps] == ["Account", *(f"Function {name}" for name in NAMES)]
    assert _states(steps) == ["done", "gone", "gone"]
    assert aws.functions.alive() == []
    assert aws.logs.groups == {}
    assert _states(_remove(demo.by_role, sizes=(1769,))) == ["done", "gone"]
    assert _remove(demo.by_role)[-1].words.startswith("Nothing of this")


def test_a_log_whose_function_is_gone_goes_too(aws: AwsEmulator, demo: DemoAccount) -> None:
    own = _with_own_names(demo)
    _set_up(own)
    aws_functions.remove(own.open().client("lambda"), function_name(own.prefix, SIZES[0]))
    _remove(own, sizes=SIZES)
    assert aws.logs.groups == {}


@pytest.mark.parametrize("deleted_by", [remove, remove_sizes])
def test_without_tags_a_function_of_a_shared_name_is_used_and_left(
    aws: AwsEmulator, demo: DemoAccount, deleted_by: Callable[..., Iterator[SetUpStep]]
) -> None:
    """Older connections of one account share names: a name says nothing of the owner there."""
    client = demo.by_role.open().client("lambda")
    aws_functions.deploy(client, NAMES[0], thin(), demo.actor_role, SIZES[0], timeout_s=30)
    (tags,) = [step for step in _set_up(demo.by_role) if step.name == f"Tags of {NAMES[0]}"]
    assert "is used here" in tags.words
    steps = list(deleted_by(demo.by_role.open(), OWNER, SIZES, patience_s=0))
    (kept,) = [step for step in steps if step.name == f"Function {NAMES[0]}"]
    assert "it is kept" in kept.words
    assert [one.name for one in aws.functions.alive()] == NAMES[:1]
    assert set(aws.logs.groups) == {log_group(NAMES[0])}


def test_a_log_of_a_shared_name_stays_with_whoever_reads_it(aws: AwsEmulator, demo: DemoAccount) -> None:
    """Its function may be deleted and made again by its owner; nothing says whose the log is."""
    _set_up(demo.by_role, OTHER)
    aws_functions.remove(demo.by_role.open().client("lambda"), NAMES[0])
    steps = _remove(demo.by_keys, sizes=SIZES)
    assert "after 7 days" in steps[1].words
    assert set(aws.logs.groups) == {log_group(name) for name in NAMES}


def test_what_another_connection_made_is_used_and_left(aws: AwsEmulator, demo: DemoAccount) -> None:
    _set_up(demo.by_role, OTHER)
    steps = _set_up(demo.by_keys)
    assert set(_states(steps)) == {"done"}
    assert "another connection (con_bbbbbbbbbb)" in steps[4].words
    kept = _remove(demo.by_keys, sizes=SIZES)
    assert "another connection" in kept[1].words
    assert len(aws.functions.alive()) == 2
    _remove(demo.by_role, OTHER)
    assert aws.functions.alive() == []


def test_without_the_actors_role_it_says_how_to_make_it(aws: AwsEmulator, demo: DemoAccount) -> None:
    roles = dict(aws.account.roles)
    for arn in [arn for arn, one in roles.items() if one.service]:
        del aws.account.roles[arn]
    missing = _set_up(demo.by_role)[-1]
    assert missing.state == "missing"
    assert demo.actor_role in missing.words
    assert "template" in missing.fix
    assert aws.functions.alive() == []
    aws.account.roles.update(roles)
    assert "missing" not in _states(_set_up(demo.by_role))


@pytest.mark.parametrize(
    ("right", "step"),
    [
        ("lambda:CreateFunction", f"Function {NAMES[0]}"),
        ("iam:PassRole", f"Function {NAMES[0]}"),
        ("lambda:TagResource", f"Function {NAMES[0]}"),
        ("lambda:GetFunction", f"Function {NAMES[0]}"),
        ("lambda:GetFunctionConfiguration", f"Function {NAMES[0]}"),
        ("logs:PutRetentionPolicy", f"Log of {NAMES[0]}"),
    ],
)
def test_a_missing_right_is_named(aws: AwsEmulator, demo: DemoAccount, right: str, step: str) -> None:
    role = next(one for one in aws.account.roles.values() if one.service is None)
    denied = {"Effect": "Deny", "Action": right, "Resource": "*"}
    role.policy = Policy((*role.policy.statements, denied))
    reported = next(one for one in _set_up(demo.by_role) if one.state == "missing")
    assert reported.name == step
    assert right in reported.words
    assert f"Add {right} " in reported.fix


def test_wrong_keys_are_reported_at_the_first_step(demo: DemoAccount) -> None:
    wrong = AwsConnection(
        AwsKeys("AKIAWRONGWRONGWRONG", "no such secret"), endpoint_url=demo.by_keys.endpoint_url
    )
    reported = _set_up(wrong)
    assert _states(reported) == ["missing", "done"]
    assert "this access key" in reported[0].words
    assert _states(_remove(wrong)) == ["missing"]


def test_a_package_that_cannot_be_made_ends_it(aws: AwsEmulator, demo: DemoAccount) -> None:
    def packed() -> Bundle:
        raise BundleError("the wheels could not be fetched")

    steps = list(set_up(demo.by_role.open(), OWNER, SIZES, packed))
    assert _states(steps) == ["done", "missing"]
    assert aws.functions.alive() == []


def test_a_function_that_does_not_go_is_reported(aws: AwsEmulator, demo: DemoAccount) -> None:
    _set_up(demo.by_role, sizes=(1769,))
    aws.faults.order("zombie_delete", 1)
    reported = _remove(demo.by_role)
    assert _states(reported) == ["done", "missing"]
    assert "Remove again" in reported[1].fix
    assert _states(_remove(demo.by_role)) == ["done", "gone"]
