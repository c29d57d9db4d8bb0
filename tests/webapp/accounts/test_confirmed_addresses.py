"""An address counts once it is confirmed."""

import pytest
from allauth.account.models import EmailAddress

from tests.factories import make_user
from webapp.accounts.models import User
from webapp.accounts.queries import confirmed_addresses, confirmed_people, is_confirmed

pytestmark = pytest.mark.django_db


def test_only_a_confirmed_address_counts_as_a_persons_own() -> None:
    ada, bob = User.objects.create_user("ada@example.org"), User.objects.create_user("bob@example.org")
    mine = EmailAddress.objects.create(user=ada, email="ada@example.org", primary=True, verified=False)
    EmailAddress.objects.create(user=ada, email="ada@example.com", verified=True)
    EmailAddress.objects.create(user=bob, email="bob@example.com", verified=True)
    assert (confirmed_addresses(ada), is_confirmed(ada)) == (["ada@example.com"], False)
    assert not confirmed_people(User.objects.all()).exists()
    mine.set_verified()
    assert (confirmed_addresses(ada), is_confirmed(ada)) == (["ada@example.com", "ada@example.org"], True)
    assert confirmed_people(User.objects.all()).get() == ada


def test_the_factories_people_have_confirmed_their_addresses() -> None:
    assert is_confirmed(make_user())
