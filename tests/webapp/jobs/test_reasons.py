"""The table of reasons why a job is in its state: complete, the only source of codes, and readable for old rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from tests.factories import make_job
from training.engine.messages import FAILED_ENDS, OWN_ENDS, StopCode
from webapp.formatting import Tone
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.jobs.reasons import (
    LOOKS,
    OF_ENGINE,
    Reason,
    ReasonCode,
    reason_beside_pill,
    reason_in_words,
)
from webapp.templatetags.look import _symbols

_WEBAPP = Path(settings.BASE_DIR) / "webapp"


def _parameters(reason: Reason) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(reason.sentence) if name}


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call in the product, with its place."""
    for path in sorted(_WEBAPP.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{path.relative_to(_WEBAPP.parent)}:{node.lineno}", node


def test_each_code_has_a_reason_with_a_state_words_and_an_icon() -> None:
    assert {reason.code for reason in Reason} == set(ReasonCode)
    for reason in Reason:
        change = reason.change(**dict.fromkeys(_parameters(reason), 1))
        assert (change.state, change.code) == (reason.state, reason.code)
        assert reason_in_words(Job(observed=change.state, reason_code=change.code, reason=change.sentence))
        assert reason.code.label


def test_a_reason_beside_the_pill_does_not_repeat_it() -> None:
    for observed, reason, said in (
        (Observed.SUCCEEDED, "", ""),
        (Observed.PAUSED, "Paused on request.", "On request."),
        (Observed.PAUSED, "Paused.", ""),
        (Observed.CANCELLED, "Stopped by hand.", "By hand."),
        (Observed.STARTING, "Starting its workers.", "Starting its workers."),
        (Observed.SUCCEEDED, "Reached 250,000 steps.", "Reached 250,000 steps."),
    ):
        assert reason_beside_pill(Job(observed=observed, reason=reason)) == said


def test_each_look_is_drawn_with_a_tone_and_an_icon_that_exist() -> None:
    css = (Path(settings.BASE_DIR) / "static/css/states.css").read_text(encoding="utf-8")
    assert {*re.findall(r"^\.tone-([a-z]+) \{", css, re.MULTILINE), ""} == set(get_args(Tone))
    icons = {icon for look in LOOKS.values() for icon in (look.icon, look.event_icon)} - {""}
    assert icons <= _symbols().keys()
    assert {look.tone for look in LOOKS.values()} <= set(get_args(Tone))


def test_each_reason_of_the_engine_is_one_of_a_job() -> None:
    codes: set[str] = set(get_args(StopCode))
    assert set(OF_ENGINE) == codes
    assert {code: reason.code.value for code, reason in OF_ENGINE.items()} == {code: code for code in codes}
    assert {code for code, reason in OF_ENGINE.items() if reason.state == Observed.SUCCEEDED} == OWN_ENDS
    assert {code for code, reason in OF_ENGINE.items() if reason.state == Observed.FAILED} == FAILED_ENDS


def test_each_reason_is_given_somewhere_with_the_parameters_of_its_sentence() -> None:
    given = set(OF_ENGINE.values())
    for place, call in _calls():
        function = call.func
        if not (isinstance(function, ast.Attribute) and function.attr == "change"):
            continue
        row = function.value
        if isinstance(row, ast.Attribute) and isinstance(row.value, ast.Name) and row.value.id == "Reason":
            assert {keyword.arg for keyword in call.keywords} == _parameters(Reason[row.attr]), place
    for path in sorted(_WEBAPP.rglob("*.py")):
        if path.name != "reasons.py":
            names = re.findall(r"\bReason\.([A-Z_]+)\b", path.read_text(encoding="utf-8"))
            given |= {Reason[name] for name in names}
    assert given == set(Reason), "each reason is given somewhere: reasons.py says by which functions"


def test_no_place_writes_or_compares_a_code_as_text() -> None:
    for place, call in _calls():
        for keyword in call.keywords:
            if keyword.arg == "reason_code":
                assert not isinstance(keyword.value, ast.Constant), place
    for path in sorted(_WEBAPP.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""job\.reason_code (?:==|!=|in) [("']""", text), path


@pytest.mark.django_db
def test_an_unknown_code_cannot_be_stored() -> None:
    job = make_job()
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(reason_code="bugdet")
