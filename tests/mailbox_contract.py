"""What every mailbox must do, in memory or in a database: both its sides at once, on a clock of the test's.

Subclass with a fixture `post`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cloud.actor.protocol import Receipt
from cloud.platforms.gateway.store import HandOut, LeasedCall, Store, WaitingPuller
from training.engine.ports import Mailbox, Offer, OfferEnd

WEIGHTS = "ab" * 32


@dataclass
class Post:
    """A mailbox, its gateway's side, a token that opens it, and its clock."""

    mailbox: Mailbox
    store: Store
    box: str
    token: str
    now_unix_s: Callable[[], float]
    forward: Callable[[float], None]

    def offer(self, *names: str, begin_s: float = 100.0, most_s: float = 50.0, starts: int = 3) -> None:
        begin_by = self.now_unix_s() + begin_s
        self.mailbox.offer(
            [Offer(name, f"do {name}".encode(), begin_by, 10.0, most_s, 1000, starts) for name in names]
        )

    def ask(self, *pullers: str) -> HandOut:
        return self.store.hand_out(self.box, [WaitingPuller(name, f"unit of {name}") for name in pullers])

    def given(self, puller: str) -> str | None:
        given = self.ask(puller).work.get(puller)
        return None if given is None else given.call_id

    def beat(self, puller: str, call_id: str) -> str:
        return self.store.beat(self.box, puller, call_id).word

    def bring(self, puller: str, call_id: str, answer: bytes = b"done") -> str:
        receipt: Receipt = self.store.receive(self.box, puller, call_id, answer)
        return receipt.word

    def room(self, puller: str, call_id: str) -> int:
        return self.store.room(self.box, puller, call_id)

    def taken(self) -> list[OfferEnd]:
        return self.mailbox.take(0.0)

    def ends(self) -> list[tuple[str, bytes | None, int]]:
        return [(one.call_id, one.answer, one.starts) for one in self.taken()]


class MailboxContract:
    @pytest.fixture
    def post(self) -> Post:
        raise NotImplementedError

    def test_calls_are_handed_out_one_to_each_in_order(self, post: Post) -> None:
        post.offer("c1", "c2", "c3")
        assert post.ask("p1", "p2").work == {
            "p1": LeasedCall("c1", b"do c1", 10.0, 1000),
            "p2": LeasedCall("c2", b"do c2", 10.0, 1000),
        }
        assert post.given("p3") == "c3"
        assert post.given("p4") is None

    def test_an_answer_is_delivered_once(self, post: Post) -> None:
        post.offer("c1")
        offered = post.now_unix_s()
        post.forward(2.0)
        post.given("p1")
        post.forward(3.0)
        assert post.room("p1", "c1") == 1000
        assert post.bring("p1", "c1", b"result") == "taken"
        assert post.taken() == [OfferEnd("c1", b"result", 1, offered, offered + 2, offered + 5, "p1")]
        assert post.taken() == []

    def test_an_answer_that_comes_again_counts_once(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        assert [post.bring("p1", "c1"), post.bring("p1", "c1", b"other")] == ["taken", "known"]
        assert post.ends() == [("c1", b"done", 1)]
        assert post.bring("p1", "c1") == "known"
        assert post.ends() == []

    def test_an_id_is_offered_once(self, post: Post) -> None:
        post.offer("c1", "c1")
        post.offer("c1")
        assert (post.given("p1"), post.given("p2")) == ("c1", None)
        post.bring("p1", "c1")
        post.taken()
        post.offer("c1")
        assert post.given("p2") is None

    def test_a_puller_that_asks_again_gets_the_same_call_and_it_counts_as_one_start(self, post: Post) -> None:
        post.offer("c1", "c2")
        assert [post.given("p1"), post.given("p1")] == ["c1", "c1"]
        post.bring("p1", "c1")
        assert post.ends() == [("c1", b"done", 1)]

    def test_a_call_of_a_silent_puller_goes_to_the_next(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        post.forward(9.0)
        assert post.given("p2") is None
        post.forward(2.0)
        assert post.given("p2") == "c1"
        assert post.beat("p1", "c1") == "drop"
        post.bring("p2", "c1")
        assert post.ends() == [("c1", b"done", 2)]

    def test_signs_of_life_keep_a_call_but_not_for_ever(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        for _ in range(6):
            post.forward(8.0)
            assert post.beat("p1", "c1") == "go_on"
        assert post.given("p2") is None
        post.forward(8.0)
        assert post.given("p2") == "c1"

    def test_the_first_of_two_answers_counts_whichever_puller_sends_it(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        post.forward(11.0)
        post.given("p2")
        assert post.bring("p1", "c1", b"late") == "taken"
        assert post.beat("p2", "c1") == "drop"
        assert post.bring("p2", "c1", b"second") == "known"
        assert post.ends() == [("c1", b"late", 2)]

    def test_an_answer_counts_although_its_lease_is_over(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        post.forward(11.0)
        assert post.taken() == []
        assert post.bring("p1", "c1") == "taken"
        assert post.ends() == [("c1", b"done", 1)]

    def test_a_puller_cannot_answer_a_call_of_another(self, post: Post) -> None:
        post.offer("c1")
        assert post.bring("p1", "c1") == "unwanted"
        post.given("p1")
        assert (post.bring("p2", "c1"), post.room("p2", "c1")) == ("unwanted", 0)
        assert (post.bring("p1", "c9"), post.room("p1", "c9")) == ("unwanted", 0)
        assert post.ends() == []

    def test_a_call_without_an_answer_ends_after_its_starts(self, post: Post) -> None:
        post.offer("c1", starts=2)
        for puller in ("p1", "p2"):
            assert post.given(puller) == "c1"
            post.forward(11.0)
        assert post.given("p3") is None
        assert post.ends() == [("c1", None, 2)]

    def test_a_call_is_not_begun_after_its_time(self, post: Post) -> None:
        post.offer("c1", "c2", begin_s=5.0)
        assert post.given("p1") == "c1"
        post.forward(6.0)
        assert post.given("p2") is None
        # The one that was begun in time is nevertheless finished.
        assert post.bring("p1", "c1") == "taken"
        assert sorted(post.ends()) == [("c1", b"done", 1), ("c2", None, 0)]

    def test_what_is_withdrawn_is_not_wanted_any_more(self, post: Post) -> None:
        post.offer("c1", "c2")
        post.given("p1")
        post.mailbox.withdraw(["c1", "c2", "nothing"])
        assert post.beat("p1", "c1") == "drop"
        assert (post.room("p1", "c1"), post.bring("p1", "c1")) == (0, "unwanted")
        assert post.given("p2") is None
        assert post.ends() == []

    def test_a_puller_that_leaves_gives_its_call_back(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        post.store.leave(post.box, "p1")
        assert post.given("p2") == "c1"
        assert [one.leaving for one in post.mailbox.pullers()] == [True, False]

    def test_the_dismissed_finish_their_work_and_leave(self, post: Post) -> None:
        post.offer("c1", "c2")
        post.given("p1")
        post.mailbox.dismiss(["p1", "nobody"])
        assert post.beat("p1", "c1") == "go_on"
        assert post.bring("p1", "c1") == "taken"
        assert post.ask("p1", "p2").leave == {"p1"}
        assert [one.call_id for one in post.mailbox.pullers()] == [None, "c2"]

    def test_pullers_are_known_by_when_they_were_seen(self, post: Post) -> None:
        began = post.now_unix_s()
        post.offer("c1")
        post.given("p1")
        post.forward(8.0)
        post.beat("p1", "c1")
        post.given("p2")
        first, second = post.mailbox.pullers()
        assert (first.name, first.unit, first.call_id) == ("p1", "unit of p1", "c1")
        assert (first.first_seen_unix_s, first.last_seen_unix_s) == (began, began + 8)
        assert (second.name, second.first_seen_unix_s, second.call_id) == ("p2", began + 8, None)

    def test_pullers_learn_how_long_they_may_live(self, post: Post) -> None:
        post.mailbox.stay(30.0)
        found = post.ask("p1")
        assert found.stay_until_unix_s - found.now_unix_s == pytest.approx(30.0)
        post.offer("c1")
        post.given("p1")
        post.forward(5.0)
        assert post.store.beat(post.box, "p1", "c1").live_s == pytest.approx(25.0)

    def test_weights_are_there_until_they_are_dropped(self, post: Post) -> None:
        post.mailbox.publish(WEIGHTS, b"numbers")
        post.mailbox.publish(WEIGHTS, b"numbers")
        assert post.store.weights(post.box, WEIGHTS) == b"numbers"
        post.mailbox.drop([WEIGHTS, "cd" * 32])
        assert post.store.weights(post.box, WEIGHTS) is None

    def test_a_closed_box_is_empty_and_sends_everyone_away(self, post: Post) -> None:
        post.mailbox.publish(WEIGHTS, b"numbers")
        post.offer("c1", "c2")
        post.given("p1")
        post.mailbox.close()
        post.mailbox.close()
        assert not post.ask("p1", "p2").open
        assert post.beat("p1", "c1") == "leave"
        assert (post.room("p1", "c1"), post.bring("p1", "c1")) == (0, "unwanted")
        assert post.store.weights(post.box, WEIGHTS) is None

    def test_a_token_opens_its_own_box(self, post: Post) -> None:
        assert post.store.admitted(post.token) == post.box
        for wrong in (post.token[:-1], post.token + "x", "", ".", "1." + "x" * 43, "nothing at all"):
            assert post.store.admitted(wrong) is None

    def test_a_token_names_so_many_pullers_and_the_silent_make_room(
        self, post: Post, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cloud.platforms.gateway.store.NAMES_A_TOKEN", 3)

        def ask(token: str, *names: str) -> HandOut:
            return post.store.hand_out(post.box, [WaitingPuller(name, "u", token) for name in names])

        post.offer("c1", "c2")
        found = ask("one", "p1", "p2")
        assert set(found.work) == {"p1", "p2"}
        assert ask("one", "p3", "p4", "p5").leave == {"p4", "p5"}
        assert ask("one", *(f"made up {n}" for n in range(50))).leave == {f"made up {n}" for n in range(50)}
        assert ask("two", "q1", "q2").leave == frozenset(), "another token has names of its own"
        assert [one.name for one in post.mailbox.pullers()] == ["p1", "p2", "p3", "q1", "q2"]
        # The puller that had to leave had no call; known ones still get theirs.
        assert ask("one", "p1").work["p1"].call_id == found.work["p1"].call_id

        post.forward(9.0)
        assert [post.beat(name, found.work[name].call_id) for name in ("p1", "p2")] == ["go_on", "go_on"]
        monkeypatch.setattr("cloud.platforms.gateway.store.FORGOTTEN_AFTER_S", 8.0)
        ask("one", "p1")
        assert ask("one", "p4", "p5").leave == {"p5"}, "p3 was silent and had nothing in hand"
        assert {one.name for one in post.mailbox.pullers()} == {"p1", "p2", "p4", "q1", "q2"}

    def test_who_waits_is_woken(self, post: Post) -> None:
        post.mailbox.wake()
        assert post.mailbox.take(30.0) == []
