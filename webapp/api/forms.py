"""The form for a new token."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import Project
from webapp.accounts.queries import projects_of
from webapp.api.models import Scope
from webapp.api.tokens import DAYS_BY_DEFAULT

DAYS = ((7, "In a week"), (30, "In 30 days"), (90, "In 90 days"), (365, "In a year"))
ABILITIES = (
    ("", "Read"),
    (Scope.JOBS, "Read and run jobs"),
    (Scope.BUDGET, "Run jobs and raise budgets"),
    (Scope.MANAGE, "Everything my role allows, people and clouds too"),
)
_SCOPES: dict[str, tuple[str, ...]] = {
    "": (),
    Scope.JOBS: (Scope.JOBS,),
    Scope.BUDGET: (Scope.JOBS, Scope.BUDGET),
    Scope.MANAGE: (Scope.JOBS, Scope.BUDGET, Scope.MANAGE),
}
"""Scopes by ability. Owners decide who may raise budgets, so “manage” includes “budget”."""


class TokenForm(forms.Form):
    """A token's name, its ability, its project and its end."""

    name = forms.CharField(label="Name", max_length=60)
    ability = forms.ChoiceField(label="It may", choices=ABILITIES, initial=Scope.JOBS, required=False)
    project = forms.ModelChoiceField(
        label="In",
        queryset=Project.objects.none(),
        required=False,
        empty_label="All projects of yours",
        to_field_name="slug",
    )
    days = forms.TypedChoiceField(label="Ends", choices=DAYS, coerce=int, initial=DAYS_BY_DEFAULT)

    def __init__(self, data: Any, *, user: Any) -> None:
        super().__init__(data)
        self.fields["project"].queryset = projects_of(user)  # type: ignore[attr-defined]

    def given(self) -> dict[str, Any]:
        """The arguments of `make_token`."""
        clean = self.cleaned_data
        scopes = _SCOPES[clean["ability"]]
        return {"name": clean["name"], "scopes": scopes, "project": clean["project"], "days": clean["days"]}
