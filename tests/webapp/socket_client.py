"""A websocket client for tests, straight on the ASGI application."""

from typing import Any

from asgiref.testing import ApplicationCommunicator

_PATIENCE_S = 60.0  # so that nothing hangs for ever; what is quick is for the tests to say


class SocketClient(ApplicationCommunicator):
    """One socket. Channels' own needs daphne, which nothing else here does."""

    def __init__(self, application: Any, path: str, *, query: str = "", cookie: str = "") -> None:
        headers = [(b"cookie", cookie.encode())] if cookie else []
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        super().__init__(application, scope)

    async def open(self) -> None:
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(timeout=_PATIENCE_S))["type"] == "websocket.accept"

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def text(self) -> str:
        output = await self.receive_output(timeout=_PATIENCE_S)
        assert output["type"] == "websocket.send", output
        return str(output["text"])

    async def closed(self) -> int:
        """The code the server closes with; what it still sent is passed over."""
        while True:
            output = await self.receive_output(timeout=_PATIENCE_S)
            if output["type"] == "websocket.close":
                return int(output["code"])

    async def close(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=_PATIENCE_S)
