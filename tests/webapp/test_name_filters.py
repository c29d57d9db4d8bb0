"""Names and addresses that may be cut or broken: what is kept in sight."""

from __future__ import annotations

import re

import pytest

from webapp.templatetags.look import break_after_at, keep_end, with_code


@pytest.mark.parametrize(
    ("name", "head", "end"),
    [
        ("Hopper rates: Learning rate 0.001", "Hopper rates: Learning", " rate 0.001"),
        ("a-name-without-any-space-in-it-at-all", "a-name-without-any-sp", "ace-in-it-at-all"),
        ("<b>Hopper</b> & friends, seed 12", "&lt;b&gt;Hopper&lt;/b&gt; &amp; friends,", " seed 12"),
    ],
)
def test_a_long_name_keeps_its_end(name: str, head: str, end: str) -> None:
    assert keep_end(name) == f'<span class="keeps-end"><span>{head}</span><span>{end}</span></span>'


def test_short_names_and_addresses_are_as_they_are() -> None:
    assert keep_end("Hopper with PPO, seed 3") == "Hopper with PPO, seed 3"
    assert break_after_at("ada@example.org") == "ada@example.org"


def test_a_long_address_breaks_after_its_at() -> None:
    shown = break_after_at("a.person.with.a.long.address@department.example.org")
    assert shown == "a.person.with.a.long.address@<wbr>department.example.org"
    assert re.sub("<[^>]+>", "", break_after_at("<script>@nobody.nowhere.example")).startswith("&lt;script")


def test_words_between_backticks_are_code_and_nothing_else_of_a_text_is_markup() -> None:
    assert (
        with_code("As `bench <scale>` & `x`.") == "As <code>bench &lt;scale&gt;</code> &amp; <code>x</code>."
    )
    assert with_code("<b>plain</b>") == "&lt;b&gt;plain&lt;/b&gt;"
