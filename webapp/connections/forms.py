"""Forms of connections. Secrets go in and never come out: a form drops them once it has validated them."""

from __future__ import annotations

import re
from copy import copy
from typing import Any
from uuid import UUID

from django import forms
from django.core.validators import RegexValidator

from cloud.accounts.provision import regions
from cloud.money.billing.price_book import PriceBook
from webapp.connections.models import (
    PLAIN_FIELDS,
    SECRET_FIELDS,
    Connection,
    ConnectionKind,
    SealedSecret,
    SetUp,
)
from webapp.connections.sealing import Secret
from webapp.formatting import read_whole
from webapp.http.form_versions import FormVersion, Value, version_of

_AWS_REGION = RegexValidator(r"^[a-z]{2}(-[a-z]+){1,3}-\d{1,2}$", "A region looks like eu-central-1.")
_AZURE_REGION = RegexValidator(
    r"^[a-z][a-z0-9]{2,39}$", "A region looks like westeurope: small letters, no spaces."
)
_ROLE = RegexValidator(
    r"^arn:aws(-cn|-us-gov)?:iam::\d{12}:role/[\w+=,.@/-]{1,512}$",
    "A role's ARN looks like arn:aws:iam::123456789012:role/starlingk3x7p2qwav-dashboard.",
)
_GROUP = RegexValidator(
    r"^[-\w().]{0,89}[-\w()]$", "Letters, digits, dots, dashes, underscores and brackets only."
)
_IMAGE = RegexValidator(
    r"^[a-z0-9][a-z0-9.:-]*(/[a-z0-9][a-z0-9._-]*)+(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$",
    "An image is named like registry.example.org/starling-actor:1.",
)
_KEY_ID = RegexValidator(r"^[A-Z0-9]{16,128}$", "An access key ID has capital letters and digits only: AKIA…")
_LEAST_MB, _MOST_MB = 128, 10_240
MOST_SIZES = 20
WRONG_MEMORY = "Memory must be a whole number of MB, from 128 to 10,240, or several with commas between them."
_LIKE_A_UUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


class _Uuid(forms.CharField):
    """An id as Azure writes it."""

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if not _LIKE_A_UUID.match(text):
            raise forms.ValidationError("An ID of Azure looks like 00000000-0000-0000-0000-000000000000.")
        return str(UUID(text))


class SecretField(forms.CharField):
    """A plaintext that becomes a Secret. The control is always rendered empty."""

    def __init__(self, **options: Any) -> None:
        # Browsers offer to remember what looks like a password of this site; "new-password" keeps old ones out.
        control = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
        super().__init__(widget=control, max_length=4096, **options)

    def clean(self, value: Any) -> Secret:
        text = super().clean(value)
        if re.search(r"\s", text):
            raise forms.ValidationError("There is a space or a line break in it. Copy it again.")
        return Secret(text)


class WriteOnlyForm(forms.Form):
    """Drops its data: secrets always, and invalid values, which may be a secret in the wrong field."""

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or not any(isinstance(field, SecretField) for field in self.fields.values()):
            return
        kept: Any = copy(self.data)
        for name, field in self.fields.items():
            if isinstance(field, SecretField) or name in self.errors:
                kept.pop(self.add_prefix(name), None)
        self.data = kept


class NewConnectionForm(forms.Form):
    """Name and region. For Azure also the subscription and resource group that the roles apply to."""

    name = forms.CharField(label="Name", max_length=60)
    region = forms.CharField(label="Region", max_length=40, widget=forms.TextInput(attrs={"list": "regions"}))

    def __init__(self, *args: Any, kind: str, **options: Any) -> None:
        super().__init__(*args, **options)
        azure = ConnectionKind(kind).cloud == "azure"
        region = self.fields["region"]
        region.validators.append(_AZURE_REGION if azure else _AWS_REGION)
        region.initial = next(iter(regions.priced("azure" if azure else "aws", PriceBook.load())), "")
        if azure:
            self.fields["subscription_id"] = _Uuid(label="Subscription ID", max_length=36)
            self.fields["resource_group"] = forms.CharField(
                label="Resource group", max_length=90, validators=[_GROUP], initial="starling"
            )
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")


class _Sizes(forms.CharField):
    """Whole numbers of MB between commas."""

    def clean(self, value: Any) -> list[int]:
        sizes = {read_whole(part.strip(), _MOST_MB) or 0 for part in super().clean(value).split(",")}
        if min(sizes) < _LEAST_MB:
            raise forms.ValidationError(WRONG_MEMORY)
        if len(sizes) > MOST_SIZES:
            raise forms.ValidationError(f"At most {MOST_SIZES} sizes at a time.")
        return sorted(sizes)


class SetUpForm(forms.Form):
    """The functions to set up: memory belongs to a function, not to a call. Several sizes are set up in one go."""

    memory_mb = _Sizes(
        label="Memory of an actor",
        initial="1024",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    bucket = forms.BooleanField(label="Also a bucket for large networks", required=False)


class ContainersForm(forms.Form):
    """The image of containers. Starling only names it: Azure fetches it from its registry."""

    image = forms.CharField(
        label="Image",
        max_length=300,
        validators=[_IMAGE],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


def set_up_form(connection: Connection, data: Any = None, image: str = "") -> forms.Form:
    """The form that sets the connection's account up. `image` is the current one."""
    if connection.cloud == "azure":
        return ContainersForm(data, initial={"image": image})
    return SetUpForm(data)


class AwsRoleForm(WriteOnlyForm):
    role_arn = forms.CharField(label="Role ARN", max_length=600, validators=[_ROLE])


class AwsKeysForm(WriteOnlyForm):
    access_key_id = forms.CharField(label="Access key ID", max_length=128, validators=[_KEY_ID])
    secret_access_key = SecretField(label="Secret access key", min_length=16)

    def clean_access_key_id(self) -> str:
        key_id: str = self.cleaned_data["access_key_id"]
        if key_id.startswith("ASIA"):
            raise forms.ValidationError(
                "This key is a temporary one and ends within hours. Make one for a user: it begins with AKIA."
            )
        return key_id


class AzurePrincipalForm(WriteOnlyForm):
    tenant_id = _Uuid(label="Directory (tenant) ID", max_length=36)
    client_id = _Uuid(label="Application (client) ID", max_length=36)
    client_secret = SecretField(label="Client secret", min_length=8)

    def clean_client_secret(self) -> Secret:
        secret: Secret = self.cleaned_data["client_secret"]
        if _LIKE_A_UUID.match(secret.reveal()):
            raise forms.ValidationError(
                "This is the secret's ID. Azure shows its Value beside it, once, when the secret is made."
            )
        return secret


_FORMS: dict[str, type[WriteOnlyForm]] = {
    ConnectionKind.AWS_ROLE: AwsRoleForm,
    ConnectionKind.AWS_KEYS: AwsKeysForm,
    ConnectionKind.AZURE_PRINCIPAL: AzurePrincipalForm,
}


def identity_form(connection: Connection, data: Any = None) -> WriteOnlyForm:
    """The form of the connection's identity, with the stored values that are not secret."""
    seen = {field: getattr(connection, field) for field in PLAIN_FIELDS[connection.kind]}
    form = _FORMS[connection.kind](data, initial=seen)
    for field in form.fields.values():
        field.widget.attrs.setdefault("autocomplete", "off")
        field.widget.attrs["spellcheck"] = "false"
    return form


def identity_version(connection: Connection, secret: SealedSecret | None) -> FormVersion:
    """What the form of the identity is drawn from."""
    set_at = Value("The secret", f"set {secret.set_at:%Y-%m-%d %H:%M:%S}" if secret else "")
    return version_of(identity_form(connection), f"identity of {connection.pk}", set_at)


def set_up_version(connection: Connection, made: SetUp | None) -> FormVersion:
    """What the form of the set-up is drawn from: what was requested of the account last."""
    sizes = ", ".join(map(str, made.requested_mb)) if made else ""
    bucket = "on" if made and made.requested_bucket else "off"
    image = made.image if made else ""
    values = (
        Value("Memory", sizes, "memory_mb"),
        Value("The bucket", bucket, "bucket"),
        Value("Image", image, "image"),
    )
    return FormVersion(f"set-up of {connection.pk}", values)


def removal_version(connection: Connection, secret: SealedSecret | None, made: SetUp | None) -> FormVersion:
    """What the removal's dialog is drawn from: it destroys the secret, and says what is left in the account."""
    values = (*identity_version(connection, secret).values, *set_up_version(connection, made).values)
    return FormVersion(f"removal of {connection.pk}", values)


def plain_of(connection: Connection, form: forms.Form) -> dict[str, str]:
    return {field: form.cleaned_data[field] for field in PLAIN_FIELDS[connection.kind]}


def secrets_of(connection: Connection, form: forms.Form) -> dict[str, Secret]:
    return {field: form.cleaned_data[field] for field in SECRET_FIELDS[connection.kind]}
