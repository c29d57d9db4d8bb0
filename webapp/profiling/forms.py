"""The form of a memory profile."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from pydantic import ValidationError

from cloud.profiling_runs import Plan
from training.environments.model import EnvironmentSpec

SIZES = "512 1024 1769 3008"


class ProfileForm(forms.Form):
    """After `is_valid`, `plan` is what to run."""

    plan: Plan

    environment = forms.CharField(label="Environment", max_length=100, initial="Hopper-v5")
    memory_mb = forms.CharField(label="Sizes of memory", max_length=100, initial=SIZES)
    environments_per_actor = forms.IntegerField(
        label="Environment copies per actor", initial=1, min_value=1, max_value=256, required=False
    )
    steps = forms.IntegerField(label="Steps of a call", initial=1024, min_value=64, max_value=16_384)
    keep = forms.BooleanField(label="Keep new functions", required=False)

    def __init__(self, *args: Any, in_account: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("environments_per_actor", "steps"):
            self.fields[name].widget = forms.TextInput(attrs={"inputmode": "numeric"})
        self.fields["environment"].widget.attrs["list"] = "environments"
        if not in_account:
            del self.fields["keep"]
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean_environment(self) -> EnvironmentSpec:
        try:
            return EnvironmentSpec(id=self.cleaned_data["environment"].strip())
        except ValidationError as error:
            raise forms.ValidationError(_words(error)) from None

    def clean_memory_mb(self) -> tuple[int, ...]:
        """Sizes with spaces or commas between; 1,024 is one number."""
        text = re.sub(r"(?<=\d),(?=\d{3}(\D|$))", "", self.cleaned_data["memory_mb"])
        words = re.split(r"[\s,;]+", text.strip())
        if not all(word.isdecimal() for word in words):
            raise forms.ValidationError("Whole numbers of MB with spaces between, such as 512 1024 1769.")
        return tuple(int(word) for word in words)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            wanted = {name: cleaned[name] for name in ("environment", "memory_mb", "steps")}
            wanted["environments_per_actor"] = cleaned["environments_per_actor"] or 1
            try:
                self.plan = Plan(**wanted)
            except ValidationError as error:
                self.add_error("memory_mb", _words(error))
        return cleaned


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "too_long":
        return f"At most {first['ctx']['max_length']} sizes at once."
    text = str(first["msg"]).removeprefix("Value error, ")
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
