"""What alerts go out to, for real, on this machine: a mail server that keeps what it gets, and a web server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from aiosmtpd.controller import Controller


class Mail(NamedTuple):
    """A mail as it came in, and when."""

    at: float
    to: list[str]
    message: EmailMessage


class MailCatcher:
    """Takes every mail, or answers what `refuse_with` says."""

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        self.refuse_with = ""
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse_with:
            return self.refuse_with
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append(Mail(time.time(), list(envelope.rcpt_tos), message))
        return "250 OK"


@contextmanager
def mail_catcher(port: int) -> Iterator[MailCatcher]:
    """A mail server on this port while the block runs."""
    catcher = MailCatcher()
    controller = Controller(catcher, hostname="127.0.0.1", port=port, ready_timeout=60.0)
    controller.start()
    catcher.port = port
    try:
        yield catcher
    finally:
        controller.stop()


class Post(NamedTuple):
    """A request as it came in, and when."""

    at: float
    path: str
    headers: dict[str, str]
    body: bytes


class WebReceiver:
    """Keeps every post and answers with `status` and `headers`; `pause_s` before that, a letter at a time if `drip`."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        self.pause_s = 0.0
        self.drip = False
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    """A web server on a free port while the block runs."""
    receiver = WebReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                return  # the sender died over it, and what is not whole is no message
            receiver.posts.append(Post(time.time(), self.path, dict(self.headers), body))
            time.sleep(receiver.pause_s)
            while receiver.drip:
                self.wfile.write(b"H")
                time.sleep(0.05)
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                pass  # the sender hung up, which is what some tests are about

        def log_message(self, *details: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.drip = False
        server.shutdown()
        server.server_close()
