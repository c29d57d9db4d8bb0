"""Fixtures of the live feed."""

import pytest_asyncio
from asgiref.sync import sync_to_async

from tests.webapp.jobs.events.live_viewer import Seen


@pytest_asyncio.fixture
async def seen(transactional_db: None) -> Seen:
    return await sync_to_async(Seen)()
