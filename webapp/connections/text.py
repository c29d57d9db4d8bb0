"""Texts, tones and icons of connections and their tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from cloud.accounts.provision.regions import has_prices
from cloud.accounts.provision.steps import StepState
from cloud.money.billing.price_book import PriceBook
from webapp.connections.models import Aim, CheckState, Connection, ConnectionKind, SetUp
from webapp.connections.queries import TEST_SILENT_FOR, is_given_up, is_under_way
from webapp.formatting import Status, Tone, plural


class ConnectionWay(NamedTuple):
    """One way to connect an account, as the page offers it."""

    kind: ConnectionKind
    title: str
    words: str
    icon: str


WAYS = (
    ConnectionWay(
        ConnectionKind.AWS_ROLE,
        "AWS with a role",
        "The best way. You make a role that trusts this installation; nothing secret is stored, and you can revoke it"
        " at any time.",
        "shield-check",
    ),
    ConnectionWay(
        ConnectionKind.AWS_KEYS,
        "AWS with access keys",
        "Where a role cannot be used. The keys of a user with few rights, kept sealed.",
        "key",
    ),
    ConnectionWay(
        ConnectionKind.AZURE_PRINCIPAL,
        "Azure with a service principal",
        "Container groups in one resource group. An app's client secret, kept sealed.",
        "boxes",
    ),
)


def connection_status(connection: Connection, now: datetime) -> Status:
    if not connection.has_identity:
        return Status("waiting", "hourglass", "Not set up", "Some steps are left to do.")
    if is_given_up(connection.test_state, connection.test_since, now, TEST_SILENT_FOR):
        return Status(
            "warning",
            "exclamation-triangle-fill",
            "No answer",
            "No worker finished the test. See that `manage.py up` runs, then test again.",
        )
    match connection.test_state:
        case CheckState.REQUESTED | CheckState.RUNNING:
            return Status(
                "running", "arrow-repeat", "Testing", "Asking the cloud; this takes some seconds.", True
            )
        case CheckState.DONE:
            return _test_status(connection.test_report or {})
    return Status("waiting", "circle", "Not tested", "Test it to see what it may do.")


def _test_status(report: dict[str, Any]) -> Status:
    checks = report.get("checks", [])
    missing = [check for check in checks if check["ok"] is False and not check["optional"]]
    unknown = [check for check in checks if check["ok"] is None and not check["optional"]]
    lesser = [check for check in checks if check["ok"] is False and check["optional"]]
    if missing:
        words = (
            missing[0]["words"]
            if len(missing) == 1
            else f"{len(missing)} of {len(checks)} checks need attention."
        )
        return Status("failed", "x-octagon-fill", "Not ready", words)
    if lesser:
        what = plural(len(lesser), "thing")
        return Status(
            "ok", "check-circle-fill", "Ready", f"Everything needed is there; {what} could be better."
        )
    if unknown:
        return Status("ok", "check-circle-fill", "Ready", "Nothing is missing, as far as the cloud reports.")
    return Status("ok", "check-circle-fill", "Ready", "Everything needed is there.")


class CheckRow(NamedTuple):
    """One check on the page."""

    name: str
    words: str
    fix: str
    tone: Tone
    icon: str
    word: str


class CheckRows(NamedTuple):
    """Checks that need action, required ones first, and all other checks."""

    wanting: list[CheckRow]
    fine: list[CheckRow]


def rows(report: dict[str, Any]) -> CheckRows:
    shown = [_row(check) for check in report.get("checks", [])]
    failed, warned = ([row for row in shown if row.tone == tone] for tone in ("failed", "warning"))
    return CheckRows([*failed, *warned], [row for row in shown if row.tone not in ("failed", "warning")])


def _row(check: dict[str, Any]) -> CheckRow:
    shown: tuple[Tone, str, str] = "ok", "check-lg", "Yes"
    if check["ok"] is None:
        shown = "waiting", "question-lg", "Not known"
    elif not check["ok"] and check["optional"]:
        shown = "warning", "exclamation-lg", "Could be better"
    elif not check["ok"]:
        shown = "failed", "x-lg", "Missing"
    return CheckRow(check["name"], check["words"], check["fix"], *shown)


def set_up_status(made: SetUp | None, now: datetime) -> Status:
    """The status of the account's set-up or removal."""
    if made is None:
        return Status("waiting", "circle", "Not set up", "Starling has made nothing in this account yet.")
    making = made.aim == Aim.SET_UP
    if is_given_up(made.state, made.since, now):
        words = (
            "No worker finished it. See that `manage.py up` runs, then do it again:"
            " the next set-up finds what was made."
        )
        return Status("warning", "exclamation-triangle-fill", "No answer", words)
    if is_under_way(made.state):
        if made.aim == Aim.PROFILE:
            words = "A profile is measuring functions of several sizes. Set-up and removal wait for it."
            return Status("running", "arrow-repeat", "Profiling", words, True)
        if making:
            return Status("running", "arrow-repeat", "Setting up", "This takes up to some minutes.", True)
        return Status("running", "arrow-repeat", "Removing", "This takes some seconds.", True)
    missing = [step for step in made.steps if step["state"] == "missing"]
    if missing:
        return Status("failed", "x-octagon-fill", "Not done", missing[0]["words"])
    if making and made.ready_image:
        words = f"Containers of {made.ready_image} run there. Idle, nothing costs money."
        return Status("ok", "check-circle-fill", "Set up", words)
    if making and not made.ready:
        return Status(
            "waiting", "circle", "Not sure", "The credentials were replaced. Set the account up again."
        )
    if making:
        words = f"{sizes(made.ready_mb)} ready. Idle, nothing costs money."
        return Status("ok", "check-circle-fill", "Set up", words)
    return Status(
        "waiting", "circle", "Removed", "The account no longer contains anything of this connection."
    )


def sizes(memory_mb: list[int]) -> str:
    """Functions with 1,024 and 3,008 MB are"""
    shown = [f"{size:,}" for size in memory_mb]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
    return f"Functions with {listed} MB are" if len(shown) > 1 else f"A function with {listed} MB is"


NEVER_TESTED = "It has not been tested yet. The test says whether every right that this needs exists."


def before_set_up(connection: Connection, book: PriceBook) -> list[str]:
    """Sentences about what to do before the account is set up. Empty if all is well."""
    sentences = []
    report = connection.test_report
    if report is None:
        sentences.append(NEVER_TESTED)
    elif missing := [
        check["name"]
        for check in report.get("checks", [])
        if check["ok"] is False and not check["optional"] and not check.get("of_set_up")
    ]:
        sentences.append(
            f"The test found missing: {', '.join(missing)}. Setting up stops where one of them is needed."
        )
    if not has_prices(connection.cloud, connection.region, book):
        sentences.append(
            f"No prices are known for {connection.region}, and without a price no budget can be kept: jobs there are"
            " refused. Connect another region, or add a price of your own to the price book."
        )
    return sentences


_STEP_SHOWN: dict[StepState, tuple[Tone, str, str]] = {
    "done": ("ok", "check-lg", "As it should be"),
    "made": ("ok", "check-lg", "Made"),
    "gone": ("ok", "check-lg", "Gone"),
    "missing": ("failed", "x-lg", "Missing"),
}


def step_rows(steps: list[dict[str, Any]]) -> list[CheckRow]:
    return [CheckRow(step["name"], step["words"], step["fix"], *_STEP_SHOWN[step["state"]]) for step in steps]
