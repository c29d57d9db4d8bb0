"""The forms of data sets: a file to upload, and what is learned of a table. Their limits are those of the models."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from pydantic import ValidationError

from training.data.readers.choice import Choice, ChoiceProblem, check
from training.data.readers.survey import TableSurvey

_PLACES = (10, 12, 14, 16, 18, 20, 22)


class UploadForm(forms.Form):
    file = forms.FileField(label="File")
    name = forms.CharField(label="Name", required=False, max_length=100)


class ChoiceForm(forms.Form):
    """What is learned of one table. Valid, it is a `choice`."""

    target = forms.ChoiceField(label="Target", choices=[])
    held_out_percent = forms.IntegerField(label="Held out", initial=20, min_value=1, max_value=90)
    seed = forms.IntegerField(label="Seed", initial=0, min_value=0, max_value=2**31 - 1)
    place_bits = forms.TypedChoiceField(
        label="Places of text", coerce=int, initial=16, choices=[(bits, f"{2**bits:,}") for bits in _PLACES]
    )
    leave_out = forms.MultipleChoiceField(label="Leave out", required=False, choices=[])
    as_text = forms.MultipleChoiceField(label="As text", required=False, choices=[])

    choice: Choice

    def __init__(self, data: QueryDict | None, *, table: TableSurvey) -> None:
        super().__init__(data)
        self._table = table
        self.typed_out = set(data.getlist("leave_out") if data is not None else ())
        self.typed_text = set(data.getlist("as_text") if data is not None else ())
        names = [(column.name, column.name) for column in table.columns]
        for field in ("target", "leave_out", "as_text"):
            self.fields[field].choices = names  # type: ignore[attr-defined]
        self.fields["target"].choices = [("", "Choose a column"), *names]  # type: ignore[attr-defined]
        self.fields["target"].error_messages["required"] = "Choose the target."

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if self.errors:
            return cleaned
        share = cleaned["held_out_percent"] / 100
        named = {key: cleaned[key] for key in ("target", "leave_out", "as_text", "seed", "place_bits")}
        try:
            self.choice = Choice(**named, held_out_share=share)
        except ValidationError as error:
            raise forms.ValidationError(str(error.errors()[0]["msg"])) from None
        self.add_problems(check(self._table, self.choice))
        return cleaned

    def add_problems(self, problems: list[ChoiceProblem]) -> None:
        for problem in problems:
            self.add_error(problem.field if problem.field in self.fields else None, problem.sentence)
