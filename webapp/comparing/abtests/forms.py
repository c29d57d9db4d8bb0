"""The form of a test: the change, the smallest difference worth finding, and one budget."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.comparing.abtests.changes import ChangeChoice, choices
from webapp.comparing.abtests.services import EFFECTS, USUAL_EFFECT, plan_of, suggested_budget
from webapp.comparing.abtests.text import EFFECT_WORDS, effect_words
from webapp.formatting import display_usd
from webapp.jobs.models import Job
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import BUDGET_DECIMALS


class ABTestForm(forms.Form):
    change = forms.ChoiceField(label="What changes")
    value = forms.CharField(label="New value", required=False, max_length=100)
    effect = forms.TypedChoiceField(
        label="Smallest difference worth finding", coerce=float, initial=USUAL_EFFECT
    )
    budget_usd = forms.DecimalField(
        label="Budget of all runs together (USD)",
        min_value=0,
        max_value=1_000_000,
        max_digits=13,
        decimal_places=BUDGET_DECIMALS,
    )

    def __init__(self, data: Any, *, job: Job, spec: JobSpec) -> None:
        super().__init__(data)
        self._choices = {row.value: row for _, rows in choices(spec) for row in rows}
        change, effect, budget = self.fields["change"], self.fields["effect"], self.fields["budget_usd"]
        assert isinstance(change, forms.ChoiceField)
        assert isinstance(effect, forms.ChoiceField)
        change.choices = [(title, [(row.value, row.title) for row in rows]) for title, rows in choices(spec)]
        plans = [plan_of(job, size) for size in EFFECTS]
        effect.choices = [
            (
                f"{plan.effect:g}",
                f"{EFFECT_WORDS[plan.effect]}, {effect_words(plan.effect)} over seeds: at most {plan.pairs} pairs"
                + (f", about {display_usd(plan.expected)}" if plan.expected else ""),
            )
            for plan in plans
        ]
        effect.initial = f"{USUAL_EFFECT:g}"
        budget.initial = f"{suggested_budget(plan_of(job, USUAL_EFFECT), spec):f}"

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        chosen: ChangeChoice | None = self._choices.get(given.get("change", ""))
        if chosen is not None and chosen.needs_value and not given.get("value", "").strip():
            self.add_error("value", f"Give the new value of {chosen.title.partition(', now')[0]}.")
        return given

    @property
    def whole_change(self) -> str:
        """The change as path=value."""
        given = self.cleaned_data
        chosen = self._choices[given["change"]]
        return f"{chosen.value}={given['value'].strip()}" if chosen.needs_value else chosen.value
