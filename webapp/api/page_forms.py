"""The pages' forms, filled in by programs, so that people and programs pass the same checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from webapp.api.problems import Refused, spec_refused
from webapp.jobs.form.spec_problems import Problem


def cleaned(form: forms.Form, given: Iterable[str] = ()) -> dict[str, Any]:
    """What the form makes of what it was filled with; else its sentences, as a refusal.

    `given` names what was sent: what the form has no field for is refused too. What was wrong is never repeated, for
    it may be a secret.
    """
    strange = [name for name in given if name not in form.fields]
    if strange or not form.is_valid():
        raise _refused(form, strange)
    return form.cleaned_data


def _refused(form: forms.Form, strange: list[str]) -> Refused:
    allowed = ", ".join(form.fields)
    found = [Problem(name, f"{name} does not belong here; what does is: {allowed}.") for name in strange]
    for name, words in form.errors.items():
        label = f"{form.fields[name].label} ({name}): " if name in form.fields else ""
        found += [Problem(name if label else "", f"{label}{word}") for word in words]
    return spec_refused(found)
