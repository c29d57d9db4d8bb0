"""Passes doorbells on to an event loop: the messages of some Redis channels, until the task is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import redis.asyncio
from django.conf import settings

log = logging.getLogger(__name__)

_CONNECTED_WITHIN_S = 2
_SUBSCRIBED_WITHIN_S = 5.0
_LISTEN_AGAIN_AFTER_S = 1.0


async def listen_to_doorbells(prefix: str, heard: Callable[[str, bytes], None]) -> None:
    """Call `heard` with each message on channels of this prefix: the rest of the channel's name, and the message.

    While Redis is away it tries again and again; those who listen look at the database as well.
    """
    while True:
        try:
            # With a socket_timeout redis-py sends through asyncio.wait_for, which in Python 3.11 loses a cancellation
            # that comes as it ends: this task would listen for ever, and its loop could not be closed.
            async with (
                redis.asyncio.Redis.from_url(
                    settings.REDIS_URL, socket_connect_timeout=_CONNECTED_WITHIN_S, socket_timeout=None
                ) as client,
                client.pubsub() as subscription,
            ):
                async with asyncio.timeout(_SUBSCRIBED_WITHIN_S):
                    await subscription.psubscribe(f"{prefix}*")
                async for message in subscription.listen():
                    if message["type"] == "pmessage":
                        heard(message["channel"].decode().removeprefix(prefix), message["data"])
        except (redis.RedisError, OSError) as error:
            log.debug("no doorbells of %s*: %s", prefix, error)
        await asyncio.sleep(_LISTEN_AGAIN_AFTER_S)
