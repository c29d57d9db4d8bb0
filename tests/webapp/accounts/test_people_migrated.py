"""People from before addresses had to be confirmed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps

from webapp.accounts.models import Membership, Project, User
from webapp.accounts.queries import is_confirmed

pytestmark = pytest.mark.django_db

_migration: Any = import_module("webapp.accounts.migrations.0003_confirmed_addresses")


def test_nobody_loses_a_membership_and_those_whom_others_know_are_confirmed() -> None:
    names = ("first", "owner", "guest", "lone", "staff", "twin", "taken")
    people = {name: User.objects.create_user(f"{name}@example.org") for name in names}
    User.objects.filter(email="staff@example.org").update(is_staff=True)
    for slug, roles in {
        "shared": {"owner": "owner", "guest": "viewer"},
        "also-shared": {"guest": "owner", "taken": "viewer"},
        "alone": {"lone": "owner"},
    }.items():
        project = Project.objects.create(name=slug, slug=slug)
        for name, role in roles.items():
            Membership.objects.create(user=people[name], project=project, role=role)
    EmailAddress.objects.create(user=people["guest"], email="guest@example.org", primary=True)
    EmailAddress.objects.create(user=people["owner"], email="owner@example.com", primary=True, verified=True)
    EmailAddress.objects.create(user=people["twin"], email="taken@example.org", verified=True)

    _migration.confirm_those_known(apps, None)

    confirmed = {one.email.split("@")[0] for one in User.objects.all() if is_confirmed(one)}
    assert confirmed == {"first", "owner", "guest", "staff"}
    assert Membership.objects.count() == 5
    assert EmailAddress.objects.get(email="owner@example.com").primary
    assert not EmailAddress.objects.get(email="owner@example.org").primary
