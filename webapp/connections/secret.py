"""A secret in memory, as a value that cannot be printed by accident.

Code that needs the plaintext calls `reveal()`; everything that turns values into text, JSON or bytes gets dots or
a refusal.
"""

from __future__ import annotations

import hmac
from typing import Any, NoReturn

DOTS = "••••"
_HINT_LETTERS = 4
_LONG_ENOUGH_FOR_A_HINT = 20


class Secret:
    """A plaintext that only `reveal` returns."""

    __slots__ = ("__plaintext",)

    def __init__(self, plaintext: str) -> None:
        self.__plaintext = plaintext

    def reveal(self) -> str:
        """The plaintext. Pass it on, and keep it in no other value."""
        return self.__plaintext

    @property
    def hint(self) -> str:
        """The last letters of a long secret, so that its owner recognises it. Empty for a short one."""
        return self.__plaintext[-_HINT_LETTERS:] if len(self.__plaintext) >= _LONG_ENOUGH_FOR_A_HINT else ""

    def __str__(self) -> str:
        return DOTS

    def __repr__(self) -> str:
        return f"Secret({DOTS})"

    def __format__(self, how: str) -> str:
        return format(DOTS, how)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__plaintext.encode(), other.reveal().encode())

    __hash__ = None  # type: ignore[assignment]  # a stored hash would be a fingerprint of the secret

    def __bool__(self) -> bool:
        return bool(self.__plaintext)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A secret is not copied or written anywhere; ask for it again where it is needed.")
