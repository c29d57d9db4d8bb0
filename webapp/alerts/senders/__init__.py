"""One way out a file: each takes a message and a channel, tries once, and says what became of it."""

from __future__ import annotations

from collections.abc import Callable

from webapp.alerts.message import AlertMessage, SendingOutcome
from webapp.alerts.models import Channel, ChannelKind
from webapp.alerts.senders import chat, mail, webhook
from webapp.clock import Clock

Sender = Callable[[Channel, AlertMessage, Clock], SendingOutcome]

SENDERS: dict[str, Sender] = {
    ChannelKind.EMAIL: mail.send,
    ChannelKind.CHAT: chat.send,
    ChannelKind.WEBHOOK: webhook.send,
}
"""A new way is a file here, a row here, and a row of `ChannelKind`."""
