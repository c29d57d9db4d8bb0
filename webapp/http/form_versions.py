"""The version of a form: the values it was drawn from, signed into a hidden field.

A page may be open for hours while its values are changed elsewhere. A form that is sent from such a page would write
the old values back over the new ones. So each form that changes money, members, connections or alerts carries what it
was drawn from. If that is no longer the present state, the view changes nothing and says what differs. Values are
signed, not hidden: a version holds only what its page shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core import signing
from django.http import QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.http.refusals import ActionRefused

FIELD = "drawn_from"
_SALT = "starling.form_versions"


@dataclass(frozen=True)
class Value:
    """One value of a version: its title, and its text as the form sends it. `name`: the field that is typed into;
    `labels`: what a person reads for values that are chosen."""

    title: str
    text: str
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def shown(self, text: str) -> str:
        words = ", ".join(self.labels.get(label, label) for label in text.split(", "))
        return f"“{words}”" if words else "empty"


@dataclass(frozen=True)
class FormVersion:
    """What a form is drawn from. `of` names the object, so that the version of another one is refused."""

    of: str
    values: tuple[Value, ...]

    @property
    def hidden_field(self) -> SafeString:
        """The hidden field that the form carries."""
        token = signing.dumps([self.of, {value.title: value.text for value in self.values}], salt=_SALT)
        return format_html('<input type="hidden" name="{}" value="{}">', FIELD, token)

    def refuse_if_stale(self, sent: QueryDict | Mapping[str, Any]) -> None:
        """Raise ActionRefused, with what changed, if something did since the sent form was drawn."""
        if changes := self.changes_since(sent):
            raise ActionRefused(" ".join(changes))

    def changes_since(self, sent: QueryDict | Mapping[str, Any]) -> list[str]:
        """Return sentences about what changed since the sent form was drawn: empty if nothing did.

        A request without a version comes from no page of ours and is not compared.
        """
        if FIELD not in sent:
            return []
        try:
            of, drawn = signing.loads(str(sent[FIELD]), salt=_SALT)
        except signing.BadSignature:
            return ["Nothing was changed: this form is not complete. Open its page again."]
        if of != self.of:
            return ["Nothing was changed: this form belongs to another page. Open its page again."]
        differing = [value for value in self.values if drawn.get(value.title) != value.text]
        if not differing:
            return []
        return [
            "Nothing was changed, because this was changed elsewhere after you opened the page.",
            *(_difference(value, str(drawn.get(value.title) or ""), sent) for value in differing),
            "Look at the present values, then send it again.",
        ]


def version_of(form: forms.BaseForm, of: str, *more: Value) -> FormVersion:
    """Return the version of a form that is drawn with its initial values. Secrets are left out: `more` can name when
    they were set."""
    shown = (
        Value(str(one.label or name), _text(form.get_initial_for_field(one, name)), name, _labels(one))
        for name, one in form.fields.items()
        if not isinstance(one.widget, forms.PasswordInput)
    )
    return FormVersion(of, (*shown, *more))


def refuse_if_stale(form: forms.BaseForm, version: FormVersion) -> None:
    """Give the form its version, which its template carries. A form that was sent from an older one is invalid."""
    form.version = version  # type: ignore[attr-defined]
    if form.is_bound:
        for sentence in version.changes_since(form.data):
            form.add_error(None, sentence)


def _difference(value: Value, drawn: str, sent: QueryDict | Mapping[str, Any]) -> str:
    typed = sent.getlist(value.name) if isinstance(sent, QueryDict) else [sent.get(value.name, "")]
    texts = ", ".join(str(entry) for entry in typed if entry != "")
    sent_too = f"; you sent {value.shown(texts)}" if value.name and value.name in sent else ""
    return f"{value.title} was {value.shown(drawn)} and is {value.shown(value.text)} now{sent_too}."


def _labels(form_field: forms.Field) -> dict[str, str]:
    choices: Any = form_field.choices if isinstance(form_field, forms.ChoiceField) else ()
    return {str(value): str(label) for value, label in choices}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
