"""The forms of the members page."""

from django import forms

from webapp.accounts.models import Role


class MemberForm(forms.Form):
    """An address and a role, for adding a member."""

    email = forms.EmailField(label="E-mail address", max_length=254)
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    """A role, for changing a member's."""

    role = forms.ChoiceField(label="Role", choices=Role.choices)
