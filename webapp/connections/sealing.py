"""Sealed secrets in the database: AES-256-GCM under a data key of each secret, which a master key wraps.

What a row belongs to (project, connection, field) is authenticated with both layers: a row that was changed, or whose
ciphertext was moved here from elsewhere, cannot be opened. It never opens to a wrong plaintext.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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


KEY_BYTES = 32
_NONCE_BYTES = 12
_KEY_ID_LETTERS = 12
_FORMAT = "starling/secret/1"


class CannotOpen(Exception):
    """A secret is missing or cannot be opened; the text says why and what to do."""


class CannotUnseal(CannotOpen):
    """A stored secret cannot be opened; the text says why and what to do, without the secret."""


class UnknownKey(CannotUnseal):
    """The row is sealed under a master key that this installation does not have."""

    def __init__(self, key_id: str) -> None:
        super().__init__(
            f"A stored secret is sealed with the master key {key_id}, which this installation does not have."
            " Add that key again, or type the secret in again."
        )


class RowChanged(CannotUnseal):
    """The row was not written for this project, connection and field."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret was changed or moved since it was written and is not used. Type it in again, and find"
            " out who can write to the database."
        )


@dataclass(frozen=True)
class SealedPlace:
    """The place that a secret is sealed for. It cannot be opened for another place."""

    project_id: int
    connection_id: str
    field: str

    def bound(self, *more: str) -> bytes:
        """Bytes that are unique to this place: JSON keeps the parts apart."""
        return json.dumps([_FORMAT, self.project_id, self.connection_id, self.field, *more]).encode()


@dataclass(frozen=True)
class MasterKey:
    """Wraps data keys. Its id is a digest of its bytes, so two keys never share an id."""

    id: str
    _bytes: bytes

    @classmethod
    def of(cls, key: bytes) -> MasterKey:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a master key has {KEY_BYTES} bytes, not {len(key)}")
        return cls(sha256(b"starling/master-key-id/1" + key).hexdigest()[:_KEY_ID_LETTERS], key)

    def cipher(self) -> AESGCM:
        return AESGCM(self._bytes)

    def __repr__(self) -> str:
        return f"MasterKey({self.id})"


@dataclass(frozen=True)
class Sealed:
    """What is stored. `wrapped_key` and `ciphertext` begin with their nonces."""

    key_id: str
    wrapped_key: bytes
    ciphertext: bytes


def seal(secret: Secret, place: SealedPlace, key: MasterKey) -> Sealed:
    """The secret sealed under a new data key, for this place only."""
    data_key = AESGCM.generate_key(bit_length=KEY_BYTES * 8)
    ciphertext = _encrypt(AESGCM(data_key), secret.reveal().encode(), place.bound("value"))
    return Sealed(key.id, _wrap(data_key, place, key), ciphertext)


def unseal(sealed: Sealed, place: SealedPlace, keys: Mapping[str, MasterKey]) -> Secret:
    """The plaintext secret. Raises UnknownKey or RowChanged, whose texts are for people."""
    plaintext = _decrypt(AESGCM(_data_key(sealed, place, keys)), sealed.ciphertext, place.bound("value"))
    return Secret(plaintext.decode())


def rewrap(sealed: Sealed, place: SealedPlace, keys: Mapping[str, MasterKey], key: MasterKey) -> Sealed:
    """The same row under another master key: its data key is wrapped again, its ciphertext stays sealed."""
    return Sealed(key.id, _wrap(_data_key(sealed, place, keys), place, key), sealed.ciphertext)


def _wrap(data_key: bytes, place: SealedPlace, key: MasterKey) -> bytes:
    return _encrypt(key.cipher(), data_key, place.bound("key", key.id))


def _data_key(sealed: Sealed, place: SealedPlace, keys: Mapping[str, MasterKey]) -> bytes:
    key = keys.get(sealed.key_id)
    if key is None:
        raise UnknownKey(sealed.key_id)
    data_key = _decrypt(key.cipher(), sealed.wrapped_key, place.bound("key", key.id))
    if len(data_key) != KEY_BYTES:
        raise RowChanged
    return data_key


def _encrypt(cipher: AESGCM, plaintext: bytes, bound: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, plaintext, bound)


def _decrypt(cipher: AESGCM, data: bytes, bound: bytes) -> bytes:
    # Shorter than nonce and tag, so it is invalid. The library would raise an error of its own.
    if len(data) < _NONCE_BYTES + 16:
        raise RowChanged
    try:
        return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], bound)
    except InvalidTag:
        raise RowChanged from None
