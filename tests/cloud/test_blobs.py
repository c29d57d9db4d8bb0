"""Published weights: the latest stay, and older ones for as long as a call in flight may be sent again with them."""

from __future__ import annotations

import pytest

from cloud.actor.blobs import BlobShelf, MissingWeights, bytes_in, bytes_out
from tests.cloud import calls


def test_the_last_eight_versions_stay_and_an_older_one_only_while_a_call_names_it() -> None:
    shelf = BlobShelf()
    refs = [shelf.publish(version, b"%d" % version) for version in range(8)]
    assert all(ref.sha256 in shelf for ref in refs)
    in_flight = [calls.rollout("c", refs[0]), calls.update("u", (b"",))]
    newer = shelf.publish(8, b"8", in_flight)
    shelf.publish(9, b"9", in_flight)
    assert [ref.sha256 in shelf for ref in (*refs, newer)] == [True, False, *[True] * 7]
    assert shelf.weights_of(in_flight[0]) == b"0"
    assert shelf.weights_of(in_flight[1]) is None
    shelf.publish(10, b"10")
    with pytest.raises(MissingWeights, match="version 0 "):
        shelf.weights_of(in_flight[0])


def test_weights_that_are_published_again_are_the_latest() -> None:
    shelf = BlobShelf()
    refs = [shelf.publish(version, b"%d" % version) for version in (*range(8), 0, 8)]
    assert [ref.version for ref in refs] == [*range(8), 0, 8]
    assert refs[0].sha256 in shelf
    assert refs[1].sha256 not in shelf


def test_what_a_call_sends_and_brings_is_counted() -> None:
    call = calls.rollout("c", BlobShelf().publish(0, b"weights"), slot_state=b"state", inputs=(b"one", b""))
    assert bytes_in(call) == len("weights") + len("state") + len("one")
    assert bytes_in(calls.update("u", (b"four",))) == 4
    assert (bytes_out(b"payload", b"state"), bytes_out(b"payload", None)) == (12, 7)
