"""The form of a budget: what counts, how much, for how long, and what happens at the limit."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

from django import forms

from webapp.accounts.models import Project, User
from webapp.budgets.display import CLOUDS
from webapp.formatting import read_whole
from webapp.http.form_versions import FormVersion, version_of
from webapp.jobs.list.actions import LONGEST_TAG, tag_named
from webapp.jobs.models import JobGroup, Tag
from webapp.money.amounts import BUDGET_DECIMALS, MOST_USD, exact_usd, picodollars, read_usd
from webapp.money.models import AtLine, Budget, BudgetScope, Period, default_thresholds

_PEOPLE_OFFERED = 500
_NEW_TAG = "new-tag"
_OF = {
    BudgetScope.USER: "user_id",
    BudgetScope.CLOUD: "cloud",
    BudgetScope.TAG: "tag_id",
    BudgetScope.GROUP: "group_id",
}


class LimitField(forms.DecimalField):
    """An amount in dollars; accepts "$" and thousands separators, and refuses commas that may be decimal ones."""

    def __init__(self) -> None:
        control = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        super().__init__(label="Limit", min_value=Decimal("0.000001"), max_value=MOST_USD, widget=control)

    # DecimalField has the same type, which its base IntegerField does not allow.
    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        if not str(value or "").strip():
            return None
        try:
            amount = read_usd(str(value))
        except ValueError as refusal:
            raise forms.ValidationError(str(refusal)) from None
        if amount != round(amount, BUDGET_DECIMALS):
            raise forms.ValidationError("At most six decimals.")
        return amount


class BudgetForm(forms.Form):
    """The fields that can be changed later."""

    name = forms.CharField(label="Name", max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    limit = LimitField()
    at_line = forms.ChoiceField(label="At the limit", choices=AtLine.choices, initial=AtLine.DRAIN)
    thresholds = forms.CharField(
        label="Alert at",
        initial=", ".join(map(str, default_thresholds())),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean_thresholds(self) -> list[int]:
        texts = [text.strip(" %") for text in self.cleaned_data["thresholds"].split(",") if text.strip(" %")]
        shares = {read_whole(text, 100) or 0 for text in texts}
        if 0 in shares or len(texts) > 10:
            raise forms.ValidationError(
                "Up to ten whole numbers of percent between 1 and 100, such as 50, 80, 100."
            )
        return sorted(shares)

    def changes(self) -> dict[str, Any]:
        """Return the form's values as fields of the budget."""
        cleaned = self.cleaned_data
        return {
            "name": cleaned["name"],
            "limit_picodollars": picodollars(cleaned["limit"]),
            "at_line": cleaned["at_line"],
            "thresholds": cleaned["thresholds"],
        }


class NewBudgetForm(BudgetForm):
    """The form of a new budget. Its scope and period cannot be changed later: the figures would count other
    jobs."""

    counts = forms.ChoiceField(label="What counts")
    new_tag = forms.CharField(
        label="New tag",
        max_length=LONGEST_TAG,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    period = forms.ChoiceField(label="Period", choices=Period.choices, initial=Period.MONTHLY)
    field_order = ("name", "counts", "new_tag", "limit", "period", "at_line", "thresholds")

    def __init__(self, *args: Any, project: Project | None, **options: Any) -> None:
        """Without a project the budget belongs to the installation."""
        super().__init__(*args, **options)
        self._project = project
        cast(forms.ChoiceField, self.fields["counts"]).choices = list(_what_may_count(project))
        self.order_fields(self.field_order)

    def begin_with_person(self, person: User) -> None:
        """Offer a budget of this person's jobs a month, unless the form was sent."""
        self.initial.update(counts=f"{BudgetScope.USER}:{person.pk}", name=f"{person.email}, a month"[:80])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        counts, tag = cleaned.get("counts"), cleaned.get("new_tag")
        if counts == _NEW_TAG and not tag:
            self.add_error("new_tag", "Write the tag that jobs will have.")
        elif counts not in (None, _NEW_TAG) and tag:
            self.add_error("new_tag", "This is for a new tag: choose that above, or leave it empty.")
        elif tag and "," in tag:
            self.add_error("new_tag", "One tag, without commas.")
        return cleaned

    def scope_values(self) -> dict[str, Any]:
        """Return scope, `of` and period for `create_budget`. Creates the tag if it is new."""
        scope, _, which = self.cleaned_data["counts"].partition(":")
        if self.cleaned_data["counts"] == _NEW_TAG and self._project is not None:
            scope, which = BudgetScope.TAG, tag_named(self._project, self.cleaned_data["new_tag"]).pk
        return {
            "scope": scope,
            "of": {_OF[BudgetScope(scope)]: which} if which else {},
            "period": self.cleaned_data["period"],
        }


def _what_may_count(project: Project | None) -> Iterator[tuple[str, str]]:
    if project is None:
        yield BudgetScope.EVERYTHING, "All jobs of this installation"
        people = User.objects.filter(is_active=True)
    else:
        yield BudgetScope.PROJECT, "All jobs of this project"
        people = User.objects.filter(memberships__project=project)
    for person in people.order_by("email")[:_PEOPLE_OFFERED]:
        yield f"{BudgetScope.USER}:{person.pk}", f"Jobs of {person.email}"
    for kind, words in CLOUDS.items():
        yield f"{BudgetScope.CLOUD}:{kind}", f"Jobs on {words}"
    if project is None:
        return
    for tag in Tag.objects.filter(project=project):
        yield f"{BudgetScope.TAG}:{tag.pk}", f"Jobs tagged {tag.name}"
    yield _NEW_TAG, "Jobs with a new tag"
    for group in JobGroup.objects.filter(project=project).order_by("-created_at")[:50]:
        yield f"{BudgetScope.GROUP}:{group.pk}", f"Jobs of the group {group.name}"


def form_of(budget: Budget, *, raised: bool = False) -> BudgetForm:
    """Return the form with the budget's values; `raised` doubles the limit."""
    return BudgetForm(
        initial={
            "name": budget.name,
            "limit": exact_usd(budget.limit_picodollars * (1 + raised)),
            "at_line": budget.at_line,
            "thresholds": ", ".join(map(str, budget.thresholds)),
        }
    )


def budget_version(budget: Budget) -> FormVersion:
    """Return what the budget's forms are drawn from."""
    return version_of(form_of(budget), f"budget {budget.pk}")
