"""Signing in with an address and a password, where several accounts may claim one address."""

from __future__ import annotations

from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.models import EmailAddress
from django.db.models import Exists, OuterRef, Q

from webapp.accounts.models import User

_PASSWORDS_TRIED = 2
"""At least. An address with one account takes as long as one with two, so that timing reveals nothing."""


class AddressBackend(AuthenticationBackend):
    """Finds the account with this address and password: first one that confirmed the address, then the oldest."""

    def _authenticate_by_email(self, email: str, password: str) -> User | None:
        accounts = _accounts_with(email)
        for _ in range(_PASSWORDS_TRIED - len(accounts)):
            self._mitigate_timing_attack(password)
            self._did_check_password = True
        fitting = [one for one in accounts if self._check_password(one, password)]
        return fitting[0] if fitting else None


def _accounts_with(email: str) -> list[User]:
    mine = EmailAddress.objects.filter(user_id=OuterRef("pk"), email=email.lower())
    accounts = User.objects.annotate(has=Exists(mine), confirmed=Exists(mine.filter(verified=True)))
    return list(accounts.filter(Q(has=True) | Q(email=email.lower())).order_by("-confirmed", "pk"))
