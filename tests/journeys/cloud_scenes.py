"""Made-up connections for looking at pages: in every state that one can be in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from cloud.accounts.checks import AccountCheck, AccountReport, Quota
from cloud.accounts.profiling import ProfiledCall
from cloud.accounts.profiling_runs import ProfilingPlan
from cloud.accounts.provision.permissions import AWS
from cloud.accounts.provision.policies import AwsScope
from cloud.accounts.provision.steps import SetUpStep
from cloud.platforms.aws.functions import function_name
from training.rl.environments.model import EnvironmentSpec
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.connections import services
from webapp.connections.models import CheckState, Connection
from webapp.connections.sealing import Secret
from webapp.resources.profiling.models import MemoryProfile, ProfileState

ACCOUNT = "111122223333"
LOW = Quota(
    "Functions at once",
    10,
    "functions",
    0,
    "New accounts have a low limit. Ask for more, which is free: Service Quotas, AWS Lambda.",
)


def connections_in_every_state(project: Project, user: User) -> dict[str, Connection]:
    """By what they show: ready, missing, fresh."""
    ready = _made(project, user, "Lab account", kind="aws_role", region="us-east-1")
    role = f"{ready.prefix}-dashboard"
    services.set_identity(
        connection=ready, plain={"role_arn": f"arn:aws:iam::{ACCOUNT}:role/{role}"}, secrets={}
    )
    _tested(ready, _report(f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/starling-check", ready, set()))
    missing = _made(project, user, "Teaching, with keys", kind="aws_keys", region="us-east-1")
    services.set_identity(
        connection=missing,
        plain={"access_key_id": "AKIAIOSFODNN7EXAMPLE"},
        secrets={"secret_access_key": Secret("made/up+for=looking/at+pages0123456789AB")},
    )
    _tested(
        missing,
        _report(
            f"arn:aws:iam::{ACCOUNT}:user/teaching",
            missing,
            {"lambda:InvokeFunction", "iam:PassRole", "s3:PutObject"},
            gone=True,
        ),
    )
    azure = {"subscription_id": "33333333-0000-0000-0000-000000000000", "resource_group": "starling"}
    _made(project, user, "Azure, course of 2026", kind="azure_principal", region="westeurope", **azure)
    fresh = _made(project, user, "New role", kind="aws_role", region="eu-west-1")
    return {
        "ready": ready,
        "missing": missing,
        "fresh": fresh,
        "azure": Connection.objects.get(kind="azure_principal"),
    }


def profiles_in_every_state(project: Project, user: User, connected: dict[str, Connection]) -> None:
    """Of the tested account one that ended and one before it; of the simulated cloud one that is going on."""
    hopper = ProfilingPlan(
        environment=EnvironmentSpec(id="Hopper-v5"), memory_mb=(256, 512, 1024, 1769, 3008)
    )
    seconds = {512: 1130.0, 1024: 562.0, 1769: 331.0, 3008: 325.0}
    ended = [
        ProfiledCall(
            256, failure="the function was killed, mostly for lack of memory; it used up to 256 of 256 MB"
        )
    ]
    for size, million_s in seconds.items():
        each_s = million_s * hopper.steps / 1e6
        cost = round(each_s * size / 1024 * 0.0000166667e12) + 200_000
        ended.append(ProfiledCall(size, hopper.steps, each_s + 2, 2.1 * max(1, 1769 / size), True, cost * 6))
        ended += [ProfiledCall(size, hopper.steps, each_s, 0.0, False, cost)] * 3
    name = function_name(connected["ready"].prefix, 3008)
    steps = [
        SetUpStep("Package", "done", "The actor's code for python3.11, 38.2 MiB packed."),
        SetUpStep(f"Function {name}", "made", "Created, with 3,008 MB, at most 15 minutes a call."),
        SetUpStep(f"Function {name}", "gone", "Deleted, with its log."),
    ]
    for minutes, environment in ((90, "CartPole-v1"), (4, "Hopper-v5")):
        plan = hopper.model_copy(update={"environment": EnvironmentSpec(id=environment)})
        _profile(project, user, connected["ready"], plan, ended, minutes, steps=steps, made_mb=[256, 3008])
    _profile(project, user, None, hopper, ended[1:8], 0, state=ProfileState.RUNNING)
    _profile(project, user, connected["missing"], hopper, ended[:1], 3)


def _profile(
    project: Project,
    user: User,
    connection: Connection | None,
    plan: ProfilingPlan,
    runs: list[ProfiledCall],
    minutes: int,
    *,
    state: str = ProfileState.DONE,
    steps: Sequence[SetUpStep] = (),
    made_mb: Sequence[int] = (),
) -> None:
    then = SYSTEM_CLOCK.now() - timedelta(minutes=minutes)
    MemoryProfile.objects.create(
        project=project,
        connection=connection,
        requested_by=user,
        requested_at=then,
        since=then,
        plan=plan.model_dump(mode="json"),
        state=state,
        runs=[asdict(one) for one in runs],
        steps=[one.as_dict() for one in steps],
        made_mb=list(made_mb),
        limit_picodollars=37 * 10**9,
        spent_picodollars=sum(one.picodollars for one in runs),
    )


def _made(project: Project, user: User, name: str, **fields: str) -> Connection:
    return services.create_connection(project=project, user=user, name=name, **fields)  # type: ignore[arg-type]


def _tested(connection: Connection, report: AccountReport) -> None:
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.DONE,
        test_since=SYSTEM_CLOCK.now() - timedelta(minutes=3),
        test_report=report.as_dict(),
        account_id=report.account,
    )


def _report(who: str, connection: Connection, missing: set[str], gone: bool = False) -> AccountReport:
    found = [AccountCheck("The credentials are valid", True, f"They belong to account {ACCOUNT}.")]
    found += [_row(permission, connection, permission.action not in missing) for permission in AWS]
    if gone:
        words = "It was set up and is not in the account any more. Jobs with 1,024 MB would fail."
        fix = "Set the account up again. If you did not delete it, see who else can change this account."
        name = f"Function {function_name(connection.prefix, 1024)}"
        found.append(AccountCheck(name, False, words, fix, of_set_up=True))
    return AccountReport(who, ACCOUNT, connection.region, (LOW,), tuple(found))


def _row(permission: Any, connection: Connection, ok: bool) -> AccountCheck:
    words = f"Needed to {permission.needed_to}."
    if ok:
        return AccountCheck(permission.action, True, words, "", permission.optional)
    place = AwsScope(connection.region, ACCOUNT, connection.prefix).arn(permission.on)
    fix = f"Add {permission.action} on {place} to the policy, or copy the whole policy again."
    return AccountCheck(permission.action, False, f"{words} No policy allows it.", fix, permission.optional)
