"""What a surface is asked for with."""

from __future__ import annotations

from django import forms

_SIZES = (9, 15, 21, 31)


class SurfaceForm(forms.Form):
    """The grid has a middle: the policy itself is one of its points."""

    checkpoint = forms.CharField(max_length=200)
    grid = forms.TypedChoiceField(
        label="Points", coerce=int, choices=[(size, f"{size} × {size}") for size in _SIZES], initial=15
    )
    span = forms.FloatField(label="To each side", min_value=0.01, max_value=10.0, initial=1.0)
    episodes = forms.IntegerField(label="Episodes a point", min_value=1, max_value=20, initial=1)
