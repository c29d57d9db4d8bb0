"""What alerts say: of spending gone wrong, and of room that a budget has again."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest

from webapp.alerts import anomalies
from webapp.alerts.anomalies import Facts
from webapp.alerts.connection_guard import Guard, limit_to
from webapp.alerts.models import AlertKind
from webapp.alerts.rules import (
    NOT_RUNNING,
    REMOVED,
    RuleRefused,
    parse,
)
from webapp.alerts.text import room_again_sentence

USD = 10**12
WELL = Facts(name="Hopper", limit_picodollars=USD, cap_picodollars=USD, unreal=False)


@pytest.mark.parametrize(
    ("changes", "beginning", "end"),
    [
        (
            {"expected_picodollars_per_s": 1e8, "burn_picodollars_per_s": 3.1e8},
            "Hopper spends $1.12 an hour, 3.1 times what was forecast ($0.360)",
            "it cannot spend more than $1.00 in all.",
        ),
        (
            {"spent_since_steps_picodollars": USD // 50},
            "Hopper has spent $0.0200 in the last ten minutes without a single step of training.",
            "Look at its events, or stop it before more is lost.",
        ),
    ],
)
def test_spending_gone_wrong(changes: dict[str, Any], beginning: str, end: str) -> None:
    (found,) = anomalies.findings(replace(WELL, **changes))
    assert found.sentence.startswith(beginning)
    assert found.sentence.endswith(end)


def test_room_that_there_is_again() -> None:
    assert room_again_sentence([USD]) == (
        "There is room for its next round again: $1.00 is free. Its page resumes it."
    )
    assert room_again_sentence([2 * USD, USD]) == (
        "There is room for their next rounds again: at least $1.00 is free for each. Their pages resume them."
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Write a rule"),
        ("return >= 3", "Write a rule"),
        ("return > much", "Write a rule"),
        ("reward > 3", "reward is no figure"),
        ("no improvement for $0", "above $0"),
        ("no improvement for $9999999", "at most $1,000,000"),
        ("return > 3; drop table", "Write a rule"),
        ("return > 1e999", "too large"),
    ],
)
def test_any_other_text_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(RuleRefused, match=why.replace("$", r"\$")):
        parse(text)


def test_what_is_over() -> None:
    assert anomalies.OVER[AlertKind.RETRIES] == "Its calls succeed again."
    assert anomalies.ENDED == NOT_RUNNING == "The job is no longer running."
    assert REMOVED == "The rule was removed."


def test_a_host_that_is_not_the_services() -> None:
    with limit_to(Guard(frozenset({"hooks.slack.com"}))) as guard, pytest.raises(OSError):
        socket.getaddrinfo("127.0.0.1", 9)
    assert guard.refusals == ["127.0.0.1 is not a host of this service."]


def test_a_kind_of_alert_is_named() -> None:
    assert AlertKind.JOB_STOPPED.label == "Stopped by its budget"
