"""What the test of a connection tells: who we are there, what the account allows, and each right on a row of its own.

The questions themselves are in `aws_checks` and `azure_checks`. They write into `Findings` as they go, so that a test
that is cut off by its time limit still tells what it found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

CUT_OFF = "The test did not end"


@dataclass(frozen=True)
class Check:
    """One question and its answer. `ok` is None where it could not be found out; `fix` says what to do.

    An `optional` one that fails takes one feature away and nothing else.
    """

    name: str
    ok: bool | None
    words: str
    fix: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Quota:
    """A limit of the account, as the cloud tells it; `used` where it tells that too."""

    name: str
    limit: int
    unit: str
    used: int | None = None
    words: str = ""


@dataclass(frozen=True)
class Report:
    """A test's answer, whole. `account` is what the cloud itself says it is."""

    identity: str
    account: str
    region: str
    quotas: tuple[Quota, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that is needed is known to be missing."""
        return bool(self.checks) and all(check.ok is not False or check.optional for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass
class Findings:
    """What has been found so far. Filled by one thread, read by another."""

    region: str
    identity: str = ""
    account: str = ""
    quotas: list[Quota] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def found(self, *checks: Check) -> None:
        self.checks.extend(checks)

    def report(self) -> Report:
        return Report(self.identity, self.account, self.region, tuple(self.quotas), tuple(self.checks))


class Unanswered(Exception):
    """A question whose answer makes all further ones pointless; its row is among the findings."""


def within(limit_s: float, region: str, ask: Callable[[Findings], None]) -> Report:
    """The report of `ask`, at the latest after `limit_s`: with what was found until then, and a row that says so.

    A thread that hangs in a network call cannot be stopped; it ends by the call's own time limit and is heard no more.
    """
    findings = Findings(region)
    unexpected: list[str] = []

    def run() -> None:
        try:
            ask(findings)
        except Unanswered:
            pass
        except Exception as error:  # of a kind, not of a text: that may hold anything
            unexpected.append(type(error).__name__)

    thread = threading.Thread(target=run, name="connection-test", daemon=True)
    thread.start()
    thread.join(limit_s)
    report = findings.report()
    if thread.is_alive():
        return _with(
            report,
            Check(CUT_OFF, False, f"The cloud had not answered everything after {limit_s:g} s.", _AGAIN),
        )
    if unexpected:
        words = f"Something unforeseen came back ({unexpected[0]}), and the test ended there."
        return _with(report, Check(CUT_OFF, False, words, _AGAIN))
    return report


_AGAIN = "Test again. If it stays so, see the cloud's status page, and whether this server may reach it."


def _with(report: Report, *checks: Check) -> Report:
    return Report(report.identity, report.account, report.region, report.quotas, (*report.checks, *checks))


def scrubbed(report: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """The report with each of the secrets blotted out, should a cloud have sent one back in an error."""

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
