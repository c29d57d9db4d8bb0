"""The form of a reward surface."""

from __future__ import annotations

from typing import get_args

from django import forms

from webapp.surfaces.services import Grid


class SurfaceForm(forms.Form):
    checkpoint = forms.CharField(max_length=200)
    grid = forms.TypedChoiceField(
        label="Points",
        coerce=int,
        choices=[(size, f"{size} × {size}") for size in get_args(Grid)],
        initial=15,
    )
    span = forms.FloatField(label="To each side", min_value=0.01, max_value=10.0, initial=1.0)
    episodes = forms.IntegerField(label="Episodes a point", min_value=1, max_value=20, initial=1)
