"""The mailbox in memory keeps the contract of all mailboxes."""

import threading

import pytest

from tests.cloud.memory_mailbox import MemoryMailbox
from tests.mailbox_contract import MailboxContract, Post


class TestMemoryMailbox(MailboxContract):
    @pytest.fixture
    def post(self) -> Post:
        now = [1_000_000.0]
        mailbox = MemoryMailbox(now_unix_s=lambda: now[0])

        def forward(seconds: float) -> None:
            now[0] += seconds

        return Post(mailbox, mailbox, mailbox.box, mailbox.new_token(), lambda: now[0], forward)

    def test_bells_ring_for_offers(self, post: Post) -> None:
        rung = threading.Event()
        assert isinstance(post.mailbox, MemoryMailbox)
        post.mailbox.on_offer(rung.set)
        post.offer("c1")
        assert rung.is_set()
