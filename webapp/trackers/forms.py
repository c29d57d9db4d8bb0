"""Forms of trackers. Tokens go in and never come out."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.connections.forms import SecretField, WriteOnlyForm
from webapp.trackers.models import Tracker, TrackerKind

_PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class TrackerForm(WriteOnlyForm):
    """The fields of one kind of tracker, with the words that this kind has for them."""

    address = forms.CharField(label="Address", max_length=300, widget=forms.TextInput(attrs=_PLAIN))
    place = forms.CharField(max_length=120, widget=forms.TextInput(attrs=_PLAIN))
    token = SecretField(label="Token", required=False)
    on = forms.BooleanField(label="Send every job's rounds here", required=False)

    def __init__(self, data: Any = None, *, kind: str, tracker: Tracker | None) -> None:
        initial = {"on": True, "place": "" if kind == TrackerKind.WANDB else "Starling"}
        if tracker is not None:
            initial = {"on": tracker.on, "place": tracker.place, "address": tracker.address}
        super().__init__(data, initial=initial)
        if kind == TrackerKind.WANDB:
            self.fields["address"].required = False
            self.fields["place"].label, self.fields["token"].label = "Project", "API key"
        else:
            self.fields["place"].label = "Experiment"
