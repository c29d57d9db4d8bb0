"""Secrets at rest: what opens, and that nothing else ever does."""

import copy
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.connections import sealing
from webapp.connections.sealing import (
    DOTS,
    CannotUnseal,
    MasterKey,
    RowChanged,
    Sealed,
    SealedPlace,
    Secret,
    UnknownKey,
    rewrap,
    seal,
    unseal,
)

texts = st.text(min_size=1, max_size=200)
keys = st.binary(min_size=32, max_size=32).map(MasterKey.of)
places = st.builds(SealedPlace, st.integers(1, 10**9), st.text(max_size=20), st.text(max_size=20))


def _ring(*members: MasterKey) -> dict[str, MasterKey]:
    return {key.id: key for key in members}


@given(texts, places, keys)
def test_what_was_sealed_opens_where_it_belongs(text: str, place: SealedPlace, key: MasterKey) -> None:
    sealed = seal(Secret(text), place, key)
    assert unseal(sealed, place, _ring(key)).reveal() == text
    if len(text) > 6:
        assert text.encode() not in sealed.ciphertext + sealed.wrapped_key


@given(texts, places, keys)
def test_the_same_secret_never_looks_the_same(text: str, place: SealedPlace, key: MasterKey) -> None:
    first, second = seal(Secret(text), place, key), seal(Secret(text), place, key)
    assert first.ciphertext != second.ciphertext
    assert first.wrapped_key != second.wrapped_key


@given(texts, places, places, keys)
def test_a_row_moved_elsewhere_does_not_open(
    text: str, place: SealedPlace, other: SealedPlace, key: MasterKey
) -> None:
    if place == other:
        return
    with pytest.raises(RowChanged):
        unseal(seal(Secret(text), place, key), other, _ring(key))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (SealedPlace(1, "con_a", "b"), SealedPlace(1, "con_", "ab")),
        (SealedPlace(1, "1", "f"), SealedPlace(11, "", "f")),
        (SealedPlace(1, 'a", "b', "c"), SealedPlace(1, "a", 'b", "c')),
    ],
)
def test_places_that_read_alike_are_different(here: SealedPlace, there: SealedPlace) -> None:
    assert here.bound() != there.bound()


@given(texts, places, keys, st.data())
def test_a_changed_row_does_not_open(
    text: str, place: SealedPlace, key: MasterKey, data: st.DataObject
) -> None:
    sealed = seal(Secret(text), place, key)
    column = data.draw(st.sampled_from(["wrapped_key", "ciphertext"]))
    held = getattr(sealed, column)
    at, flip = data.draw(st.integers(0, len(held) - 1)), data.draw(st.integers(1, 255))
    cut = data.draw(st.booleans())
    changed = held[:at] if cut else held[:at] + bytes([held[at] ^ flip]) + held[at + 1 :]
    columns = {"wrapped_key": sealed.wrapped_key, "ciphertext": sealed.ciphertext, column: changed}
    with pytest.raises(RowChanged):
        unseal(Sealed(sealed.key_id, **columns), place, _ring(key))


@given(texts, places, keys, keys)
def test_a_ciphertext_under_another_rows_key_does_not_open(
    text: str, place: SealedPlace, key: MasterKey, other: MasterKey
) -> None:
    mine, theirs = seal(Secret(text), place, key), seal(Secret("theirs"), place, key)
    with pytest.raises(RowChanged):
        unseal(Sealed(key.id, theirs.wrapped_key, mine.ciphertext), place, _ring(key, other))


@given(texts, places, keys, keys)
def test_another_key_is_a_clear_error(
    text: str, place: SealedPlace, key: MasterKey, other: MasterKey
) -> None:
    if key == other:
        return
    sealed = seal(Secret(text), place, key)
    with pytest.raises(UnknownKey, match=key.id):
        unseal(sealed, place, _ring(other))
    # Also when someone wrote the other key's id into the row, or the other key under this id.
    with pytest.raises(RowChanged):
        unseal(Sealed(other.id, sealed.wrapped_key, sealed.ciphertext), place, _ring(key, other))
    with pytest.raises(RowChanged):
        unseal(sealed, place, {key.id: other})


@given(texts, places, keys, keys)
def test_rewrapping_changes_the_key_and_nothing_else(
    text: str, place: SealedPlace, old: MasterKey, new: MasterKey
) -> None:
    sealed = seal(Secret(text), place, old)
    fresh = rewrap(sealed, place, _ring(old), new)
    assert fresh.key_id == new.id
    assert fresh.ciphertext == sealed.ciphertext
    assert unseal(fresh, place, _ring(new)).reveal() == text


@given(places, keys)
def test_rewrapping_does_not_launder_a_changed_row(place: SealedPlace, key: MasterKey) -> None:
    sealed = seal(Secret("secret"), place, key)
    moved = SealedPlace(place.project_id + 1, place.connection_id, place.field)
    with pytest.raises(RowChanged):
        rewrap(sealed, moved, _ring(key), key)


@given(places, keys)
def test_a_wrapped_key_of_another_length_is_a_changed_row(place: SealedPlace, key: MasterKey) -> None:
    """A shorter key would also decrypt, with a weaker cipher."""
    sealed = seal(Secret("value"), place, key)
    short = Sealed(key.id, sealing._wrap(bytes(16), place, key), sealed.ciphertext)
    with pytest.raises(RowChanged):
        unseal(short, place, _ring(key))


def test_a_secret_equals_secrets_alone() -> None:
    assert Secret("value") == Secret("value")
    assert Secret("value") != Secret("other")
    assert Secret("value") != "value"


def test_errors_say_nothing_of_the_secret() -> None:
    key, place = MasterKey.of(bytes(32)), SealedPlace(1, "con_a", "field")
    sealed = seal(Secret("the-plaintext"), place, key)
    for ring in ({}, {key.id: MasterKey.of(b"1" * 32)}):
        with pytest.raises(CannotUnseal) as caught:
            unseal(sealed, place, ring)
        assert "the-plaintext" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_secret_shows_itself_to_no_one(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("a-plaintext-of-some-length")
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").info("%s %r", secret, {"in": [secret]})
    shown = [str(secret), repr(secret), f"{secret}", f"{secret:>30}", repr([secret]), caplog.text]
    assert not any("plaintext" in text for text in shown)
    assert all(DOTS in text for text in shown)
    for refused in (json.dumps, copy.copy, copy.deepcopy, hash, vars):
        with pytest.raises(TypeError):
            refused(secret)
    assert secret == Secret("a-plaintext-of-some-length")
    assert secret != Secret("another")
    assert secret.hint == "ngth"
    assert Secret("short").hint == ""


def test_a_master_key_has_one_length() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        MasterKey.of(b"short")
    assert "0000" not in repr(MasterKey.of(b"0000" * 8))
