"""An event loop receives doorbells, and the task that listens for them ends wherever it is cancelled."""

import asyncio
import time

import pytest
import redis

from webapp.doorbell_listener import listen_to_doorbells


async def _until(condition, what: str) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{what}: not within a minute")


def _listeners(client: redis.Redis) -> int:
    """How many hear a bell of this prefix; a site that other tests share listens to its own."""
    return int(client.publish("bell:?", "0"))


@pytest.mark.asyncio
async def test_messages_of_a_prefix_are_heard_and_no_others(valkey: str) -> None:
    heard: list[tuple[str, bytes]] = []
    task = asyncio.create_task(listen_to_doorbells("bell:", lambda name, data: heard.append((name, data))))
    with redis.Redis.from_url(valkey) as client:
        await _until(lambda: _listeners(client), "it listens")
        client.publish("bells:a", "0")
        client.publish("bell:a", "1")
        client.publish("bell:b", "2")
        await _until(lambda: ("b", b"2") in heard, "the last is heard")
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    assert [one for one in heard if one[0] != "?"] == [("a", b"1"), ("b", b"2")]


@pytest.mark.asyncio
async def test_it_ends_at_whichever_of_its_steps_it_is_cancelled(valkey: str) -> None:
    """Its task may be cancelled once only, as the end of an event loop does. The steps cover connecting, the words
    with which a client introduces itself, and subscribing.
    """
    stuck = []
    with redis.Redis.from_url(valkey) as client:
        steps, begun_s = 0, time.monotonic()
        subscribed = False
        while not subscribed and time.monotonic() < begun_s + 240:
            task = asyncio.create_task(listen_to_doorbells("bell:", lambda name, data: None))
            for _ in range(steps):
                await asyncio.sleep(0)
            subscribed = bool(_listeners(client))
            task.cancel()
            _, pending = await asyncio.wait([task], timeout=5)
            if pending:
                stuck.append(steps)
                task.cancel()
                await asyncio.wait([task], timeout=60)
            await _until(lambda: not _listeners(client), "it has left")
            steps += 1 + steps // 30
    assert subscribed, "all steps until it listens were tried"
    assert stuck == []
