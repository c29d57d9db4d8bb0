"""Made-up connections for looking at pages: in every state that one can be in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cloud.checks import Check, Quota, Report
from cloud.provision.permissions import AWS
from cloud.provision.policies import AwsScope
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.credentials import services
from webapp.credentials.models import CheckState, Connection
from webapp.credentials.secret import Secret

ACCOUNT = "111122223333"
LOW = Quota(
    "Functions at once",
    10,
    "functions",
    0,
    "AWS starts new accounts so low. Ask for more, which is free: Service Quotas, AWS Lambda.",
)


def connections_in_every_state(project: Project, user: User) -> dict[str, Connection]:
    """By what they show: ready, missing, fresh."""
    ready = _made(project, user, "Lab account", kind="aws_role", region="eu-central-1")
    services.set_identity(
        connection=ready, plain={"role_arn": f"arn:aws:iam::{ACCOUNT}:role/starling-dashboard"}, secrets={}
    )
    _tested(
        ready,
        _report(
            f"arn:aws:sts::{ACCOUNT}:assumed-role/starling-dashboard/starling-check", "eu-central-1", set()
        ),
    )
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
            "us-east-1",
            {"lambda:InvokeFunction", "iam:PassRole", "s3:PutObject"},
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


def _made(project: Project, user: User, name: str, **fields: str) -> Connection:
    return services.create_connection(project=project, user=user, name=name, **fields)  # type: ignore[arg-type]


def _tested(connection: Connection, report: Report) -> None:
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.DONE,
        test_since=SYSTEM_CLOCK.now() - timedelta(minutes=3),
        test_report=report.as_dict(),
        account_id=report.account,
    )


def _report(who: str, region: str, missing: set[str]) -> Report:
    found = [Check("The credentials are good", True, f"AWS knows them, in account {ACCOUNT}.")]
    found += [_row(permission, region, permission.action not in missing) for permission in AWS]
    return Report(who, ACCOUNT, region, (LOW,), tuple(found))


def _row(permission: Any, region: str, ok: bool) -> Check:
    words = f"Needed to {permission.needed_to}."
    if ok:
        return Check(permission.action, True, words, "", permission.optional)
    place = AwsScope(region, ACCOUNT).arn(permission.on)
    fix = f"Add {permission.action} on {place} to the policy, or copy the whole policy again."
    return Check(permission.action, False, f"{words} No policy allows it.", fix, permission.optional)
