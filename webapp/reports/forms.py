"""The forms of the reports pages."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import Project, User
from webapp.reports.files.formats import FORMATS
from webapp.reports.models import Every
from webapp.reports.report_query import BY, PRICES

_FILES = ("pdf", "xlsx", "csv", "focus")


class ScheduleForm(forms.Form):
    """A scheduled report."""

    every = forms.ChoiceField(label="How often", choices=Every.choices, initial=Every.MONTH)
    by = forms.ChoiceField(
        label="Group by", choices=[(key, word) for key, word in BY.items() if key != "call"], initial="day"
    )
    prices = forms.ChoiceField(label="Money", choices=list(PRICES.items()), initial="actual")
    formats = forms.MultipleChoiceField(
        label="Files",
        choices=[(key, FORMATS[key].word) for key in _FILES],
        initial=["pdf", "csv"],
        widget=forms.CheckboxSelectMultiple,
    )
    recipients = forms.ModelMultipleChoiceField(
        label="To", queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: Any, *, project: Project, user: User) -> None:
        super().__init__(data)
        members = User.objects.filter(memberships__project=project, is_active=True).order_by("email")
        self.fields["recipients"].queryset = members  # type: ignore[attr-defined]
        self.fields["recipients"].initial = [user.pk]


class BillForm(forms.Form):
    file = forms.FileField(label="File")
    replace_anyway = forms.BooleanField(label="Replace what is stored anyway", required=False)
