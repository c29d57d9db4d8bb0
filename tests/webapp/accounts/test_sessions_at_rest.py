"""What a copy of the database is worth to a thief: no row of it signs anyone in."""

from __future__ import annotations

import asyncio

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from webapp.accounts.hashed_sessions import SessionStore
from webapp.accounts.services import create_person

pytestmark = pytest.mark.django_db


def _with_cookie(key: str) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client


def test_no_row_is_a_cookie_that_signs_in() -> None:
    client = Client()
    client.force_login(create_person("ada@example.com"))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert _with_cookie(cookie).get("/account/").status_code == 200
    (row,) = Session.objects.values_list("session_key", flat=True)
    assert row != cookie
    assert _with_cookie(row).get("/account/").status_code == 302


def test_signing_out_deletes_the_row() -> None:
    client = Client()
    client.force_login(create_person("ada@example.com"))
    client.post("/accounts/logout/")
    assert not Session.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_asynchronous_code_finds_saves_and_deletes_the_same_row() -> None:
    async def use() -> str:
        store = SessionStore()
        await store.aset("word", "kept")
        await store.asave()
        assert store.session_key is not None
        assert await store.aexists(store.session_key)
        assert await SessionStore(store.session_key).aget("word") == "kept"
        await store.acycle_key()
        return store.session_key

    key = asyncio.run(use())
    assert Session.objects.count() == 1
    assert SessionStore(key).get("word") == "kept"
    assert not Session.objects.filter(session_key=key).exists()
    asyncio.run(SessionStore(key).adelete())
    assert not Session.objects.exists()
