"""The result of a connection's test: our identity, the account's quotas, and a row for each right.

The tests themselves are in `cloud.platforms.aws.checks` and `cloud.platforms.azure.checks`. They write into
`Findings` as they go, so a test that is cut off by its time limit still reports what it found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

CUT_OFF = "The test did not end"


@dataclass(frozen=True)
class AccountCheck:
    """One check and its result. `ok` is None if the result is not known; `fix` says what to do.

    If an `optional` check fails, a single feature does not work. `of_set_up`: it looks at what a set-up made, and
    another set-up mends it.
    """

    name: str
    ok: bool | None
    words: str
    fix: str = ""
    optional: bool = False
    of_set_up: bool = False


@dataclass(frozen=True)
class Quota:
    """A limit of the account; `used` if the cloud reports that too."""

    name: str
    limit: int
    unit: str
    used: int | None = None
    words: str = ""


@dataclass(frozen=True)
class AccountReport:
    """The whole result of a test. `identity` and `account` are what the cloud itself reports."""

    identity: str
    account: str
    region: str
    quotas: tuple[Quota, ...]
    checks: tuple[AccountCheck, ...]

    @property
    def ok(self) -> bool:
        """True if nothing that is needed is known to be missing."""
        return bool(self.checks) and all(check.ok is not False or check.optional for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass
class Findings:
    """The results so far. One thread adds them, another reads them."""

    region: str
    identity: str = ""
    account: str = ""
    quotas: list[Quota] = field(default_factory=list)
    checks: list[AccountCheck] = field(default_factory=list)

    def found(self, *checks: AccountCheck) -> None:
        self.checks.extend(checks)

    def report(self) -> AccountReport:
        return AccountReport(self.identity, self.account, self.region, tuple(self.quotas), tuple(self.checks))


class Unanswered(Exception):
    """A check failed that all later checks need; its row is among the findings."""


def within(limit_s: float, region: str, test: Callable[[Findings], None]) -> AccountReport:
    """Return the report of `test`, at the latest after `limit_s`: then with the results so far and a row that says so.

    A thread that hangs in a network call cannot be stopped. It ends by the call's own time limit, and its later results
    are ignored.
    """
    findings = Findings(region)
    unexpected: list[str] = []

    def run() -> None:
        try:
            test(findings)
        except Unanswered:
            pass
        except Exception as error:  # only its type is reported: the text may hold secrets
            unexpected.append(type(error).__name__)

    thread = threading.Thread(target=run, name="connection-test", daemon=True)
    thread.start()
    thread.join(limit_s)
    report = findings.report()
    if thread.is_alive():
        return _with(
            report,
            AccountCheck(
                CUT_OFF, False, f"The cloud has not answered everything after {limit_s:g} s.", _AGAIN
            ),
        )
    if unexpected:
        words = f"An unexpected error ended the test ({unexpected[0]})."
        return _with(report, AccountCheck(CUT_OFF, False, words, _AGAIN))
    return report


_AGAIN = "Test again. If it fails again, check the cloud's status page, and whether this server may reach it."


def _with(report: AccountReport, *checks: AccountCheck) -> AccountReport:
    return AccountReport(
        report.identity, report.account, report.region, report.quotas, (*report.checks, *checks)
    )


def scrubbed(report: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """Return the report with dots in place of each secret, in case a cloud repeated one in an error."""

    def clean(part: Any) -> Any:
        match part:
            case dict():
                return {key: clean(value) for key, value in part.items()}
            case list() | tuple():
                return [clean(value) for value in part]
            case str():
                for secret in filter(None, secrets):
                    part = part.replace(secret, "••••")
        return part

    cleaned: dict[str, Any] = clean(report)
    return cleaned
