"""The form of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from webapp.comparing.sweeps import MOST_RUNS, Sweep, axes_from, fields_of
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.spec import JobSpec

MOST_AXES = 3


def base_of(project: Any, query: Mapping[str, Any]) -> tuple[JobSpec, str]:
    """The job that a sweep varies, and its name in the address: one of the project's jobs (`from`) or a preset."""
    job = project.jobs.filter(pk=query.get("from", "")).first()
    if job is not None:
        return job.parsed_spec(), f"from={job.pk}"
    preset, spec = begun_with(query)
    return spec, f"preset={preset.name}"


class SweepForm(forms.Form):
    """Up to three fields with their values, how they are combined, and the limit of the whole sweep."""

    name = forms.CharField(max_length=60, label="Name")
    way = forms.ChoiceField(
        label="Combined as",
        choices=[("grid", "Grid: every combination"), ("random", "Random: some combinations")],
    )
    points = forms.IntegerField(min_value=1, max_value=MOST_RUNS, label="Random points", initial=10)
    seeds = forms.IntegerField(min_value=1, max_value=20, label="Seeds a point", initial=3)
    limit = forms.DecimalField(
        min_value=0, max_digits=12, decimal_places=6, label="Limit of the whole sweep (USD)"
    )

    def __init__(self, data: Any, *, base: JobSpec) -> None:
        super().__init__(data)
        self.base = base
        self.fields["name"].initial = f"{base.name} sweep"[:60]
        self.fields["limit"].initial = base.budget_usd
        known = fields_of(base).values()
        choices = [("", "–"), *((one.path, f"{one.title}, now {one.value}") for one in known)]
        for at in range(MOST_AXES):
            first = "training.algorithm.learning_rate" if at == 0 else ""
            self.fields[f"path_{at}"] = forms.ChoiceField(
                choices=choices, required=False, label="Field", initial=first
            )
            self.fields[f"values_{at}"] = forms.CharField(required=False, max_length=300, label="Values")

    @property
    def axes(self) -> list[tuple[Any, Any]]:
        """The bound fields of each row: a path and its values."""
        return [(self[f"path_{at}"], self[f"values_{at}"]) for at in range(MOST_AXES)]

    def sweep(self) -> Sweep:
        """The sweep of the valid form. Raises SweepRefused for values that cannot be read."""
        given = self.cleaned_data
        rows = [(given[f"path_{at}"], given[f"values_{at}"]) for at in range(MOST_AXES)]
        return Sweep(
            base=self.base,
            name=given["name"].strip(),
            axes=axes_from(rows),
            way=given["way"],
            points=given["points"],
            seeds=given["seeds"],
            limit_usd=given["limit"],
        )
