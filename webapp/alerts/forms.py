"""Forms of channels. Secret addresses go in and never come out."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from webapp.alerts.channels import ADDRESSES_A_CHANNEL
from webapp.alerts.mail_consent import is_mailable
from webapp.alerts.models import AlertKind, Channel, ChannelKind
from webapp.connections.forms import SecretField, WriteOnlyForm

KINDS = [(kind.value, kind.label) for kind in AlertKind if kind != AlertKind.TEST]


class _Addresses(forms.CharField):
    """Mail addresses, separated by spaces, commas, semicolons or line breaks."""

    def __init__(self, **options: Any) -> None:
        control = forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"})
        super().__init__(widget=control, max_length=4000, **options)

    def clean(self, value: Any) -> list[str]:
        addresses = list(dict.fromkeys(re.split(r"[\s,;]+", super().clean(value).strip())))
        if len(addresses) > ADDRESSES_A_CHANNEL:
            raise ValidationError(
                f"At most {ADDRESSES_A_CHANNEL} addresses; a list of your own can hold more."
            )
        for address in addresses:
            if not is_mailable(address):
                raise ValidationError(f"{address} is no e-mail address.")
        return addresses


class _Named(WriteOnlyForm):
    name = forms.CharField(label="Name", max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}))


class MailForm(_Named):
    addresses = _Addresses(label="Addresses")


class ChatForm(_Named):
    url = SecretField(label="Address of the chat channel")


class WebhookForm(_Named):
    url = SecretField(label="Address that messages are posted to")


NEW_FORMS: dict[str, type[_Named]] = {
    ChannelKind.EMAIL: MailForm,
    ChannelKind.CHAT: ChatForm,
    ChannelKind.WEBHOOK: WebhookForm,
}


class ChannelForm(forms.Form):
    """The changeable fields of a channel. The built-in one keeps its name and its readers."""

    name = forms.CharField(label="Name", max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    addresses = _Addresses(label="Addresses")
    on = forms.BooleanField(label="Alerts go out here", required=False)
    kinds = forms.MultipleChoiceField(label="Alerts to send", choices=KINDS, required=False)

    def __init__(self, data: Any = None, *, channel: Channel) -> None:
        initial = {
            "name": channel.name,
            "addresses": "\n".join(channel.addresses),
            "on": channel.on,
            "kinds": [kind for kind, _ in KINDS if kind not in channel.silent_kinds],
        }
        super().__init__(data, initial=initial)
        if channel.built_in:
            del self.fields["name"]
        if channel.built_in or channel.way != ChannelKind.EMAIL:
            del self.fields["addresses"]

    def chosen(self) -> list[str]:
        """The kinds that are ticked as the form is shown."""
        return list(self["kinds"].value() or [])
