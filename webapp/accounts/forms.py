"""Forms of the members page and of a forgotten password."""

from typing import Any

from allauth.account.forms import ResetPasswordForm
from django import forms

from webapp.accounts.models import Role
from webapp.accounts.queries import confirmed_addresses


class MemberForm(forms.Form):
    """An address and a role, for an invitation."""

    email = forms.EmailField(label="E-mail address", max_length=254)
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    """A new role for a member."""

    role = forms.ChoiceField(label="Role", choices=Role.choices)


class ResetForm(ResetPasswordForm):
    """Sends the link to a new password only to an address that its account has confirmed."""

    users: list[Any]

    def clean_email(self) -> str:
        email: str = super().clean_email()
        self.users = [one for one in self.users if email.lower() in confirmed_addresses(one)]
        return email
