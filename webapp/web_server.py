"""The command line of the web process, for the site, tests and benchmarks."""

from __future__ import annotations

import sys

_LONGEST_MESSAGE_BYTES = 4096
"""Viewers send nothing: after a short message the socket closes with the reason, after a longer one with 1009."""


def web_server(*, port: int, host: str = "127.0.0.1", grace_s: int = 2) -> list[str]:
    """The command that serves the site until SIGTERM, then ends within about `grace_s`."""
    limits = "webapp.connection_limits"
    return [
        *(sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--host", host, "--port", str(port)),
        *("--http", f"{limits}:LimitedHttp", "--ws", f"{limits}:LimitedSocket"),
        *("--ws-max-size", str(_LONGEST_MESSAGE_BYTES), "--ws-per-message-deflate", "false"),
        "--no-proxy-headers",  # webapp.asgi reads them, of the proxies that the settings name
        *("--lifespan", "off", "--timeout-graceful-shutdown", str(grace_s)),
    ]
