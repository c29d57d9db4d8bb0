"""To whom the client sends its token: two real servers, of which one records what it got."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from client import Starling, StarlingError
from client import starling as wire
from client.main import main

TOKEN = "starling_pat_secret"


class Recorder:
    """A server that records requests. `leads_to`: where it redirects every request under /api, if anywhere."""

    def __init__(self) -> None:
        self.url = ""
        self.leads_to = ""
        self.code = 302
        self.status = 200
        self.got: list[tuple[str, str, str | None]] = []

    @property
    def tokens(self) -> set[str | None]:
        return {token for _, _, token in self.got}


@contextmanager
def recorder() -> Iterator[Recorder]:
    kept = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept.got.append((self.command, self.path, self.headers.get("Authorization")))
            redirects = bool(kept.leads_to) and self.path.startswith("/api/v1/")
            self.send_response(kept.code if redirects else kept.status)
            if redirects:
                self.send_header("Location", kept.leads_to)
            content = b'[{"slug": "first"}]'
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_GET

        def log_message(self, *details: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def servers() -> Iterator[tuple[Recorder, Recorder]]:
    with ExitStack() as both:
        yield both.enter_context(recorder()), both.enter_context(recorder())


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("URL", "TOKEN", "PROJECT"):
        monkeypatch.delenv(f"STARLING_{name}", raising=False)
    path = tmp_path / "starling.json"
    monkeypatch.setattr(wire, "CONFIG", path)
    return path


def keep(file: Path, mode: int = 0o600, **settings: str) -> None:
    file.write_text(json.dumps(settings))
    file.chmod(mode)


class TestRedirects:
    def test_a_redirect_to_another_origin_gets_no_token(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        ours, other = servers
        ours.leads_to = f"{other.url}/elsewhere"
        assert Starling(ours.url, TOKEN).call("GET", "//projects") == [{"slug": "first"}]
        assert ours.tokens == {f"Bearer {TOKEN}"}
        assert other.got == [("GET", "/elsewhere", None)]

    def test_a_redirect_within_the_origin_keeps_it(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        ours, _ = servers
        ours.leads_to = f"{ours.url}/moved"
        Starling(ours.url, TOKEN).call("GET", "//projects")
        assert ours.got[-1] == ("GET", "/moved", f"Bearer {TOKEN}")

    def test_what_is_refused_there_says_where_it_went(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        ours, other = servers
        ours.leads_to, other.status = f"{other.url}/elsewhere", 401
        with pytest.raises(StarlingError, match=f"redirects to {other.url}/elsewhere") as refused:
            Starling(ours.url, TOKEN).call("GET", "//projects")
        assert "set STARLING_URL" in str(refused.value)

    @pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize("method", ["POST", "PUT"])
    def test_a_change_is_neither_sent_elsewhere_nor_turned_into_a_read(
        self, servers: tuple[Recorder, Recorder], file: Path, code: int, method: str
    ) -> None:
        ours, other = servers
        ours.leads_to, ours.code = f"{other.url}/elsewhere", code
        with pytest.raises(StarlingError, match="redirects to"):
            Starling(ours.url, TOKEN, "first").call(method, "/jobs", {"name": "x"})
        assert (len(ours.got), other.got) == (1, [])

    def test_the_event_stream_gives_it_to_no_other_origin(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        ours, other = servers
        ours.leads_to = f"{other.url}/elsewhere"
        assert list(Starling(ours.url, TOKEN, "first")._streamed("job_a", 0)) == []
        assert other.tokens == {None}


class TestAStoredToken:
    def test_it_goes_to_its_own_origin(self, servers: tuple[Recorder, Recorder], file: Path) -> None:
        ours, other = servers
        keep(file, url=ours.url, token=TOKEN)
        Starling().call("GET", "//projects")
        Starling(f"{ours.url}/").call("GET", "//projects")
        assert (ours.tokens, other.got) == ({f"Bearer {TOKEN}"}, [])

    @pytest.mark.parametrize("way", ["argument", "variable"])
    def test_it_goes_to_no_other(
        self, servers: tuple[Recorder, Recorder], file: Path, way: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, other = servers
        keep(file, url=ours.url, token=TOKEN, project="first")
        if way == "variable":
            monkeypatch.setenv("STARLING_URL", other.url)
        client = Starling("" if way == "variable" else other.url)
        with pytest.raises(StarlingError, match=f" {ours.url} and .* {other.url}"):
            client.call("GET", "//projects")
        assert (ours.got, other.got) == ([], [])

    def test_one_of_the_variables_goes_to_their_address_only(
        self, servers: tuple[Recorder, Recorder], file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, other = servers
        monkeypatch.setenv("STARLING_URL", ours.url)
        monkeypatch.setenv("STARLING_TOKEN", TOKEN)
        with pytest.raises(StarlingError, match="STARLING_TOKEN is for"):
            Starling(other.url).call("GET", "//projects")
        Starling(other.url, "starling_pat_other").call("GET", "//projects")
        assert other.tokens == {"Bearer starling_pat_other"}

    def test_one_without_an_address_is_for_this_machine(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        keep(file, token=TOKEN)
        assert Starling()._token == TOKEN
        with pytest.raises(StarlingError, match=r"is for http://127\.0\.0\.1:8000"):
            Starling(servers[1].url).call("GET", "//projects")
        assert servers[1].got == []

    @pytest.mark.parametrize(
        ("one", "another", "same"),
        [
            ("https://a.example.org", "https://a.example.org:443/", True),
            ("https://A.example.org", "https://a.example.org", True),
            ("https://a.example.org", "http://a.example.org", False),
            ("https://a.example.org", "https://a.example.org:8443", False),
            ("https://a.example.org", "https://a.example.org.evil.org", False),
            ("https://a.example.org", "https://a.example.org@evil.org", False),
        ],
    )
    def test_an_origin_is_scheme_host_and_port(self, file: Path, one: str, another: str, same: bool) -> None:
        keep(file, url=one, token=TOKEN)
        assert (Starling(another)._token == TOKEN) is same


class TestTheFile:
    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604])
    def test_one_that_others_may_open_is_refused_with_what_to_do(
        self, servers: tuple[Recorder, Recorder], file: Path, mode: int, capsys: Any
    ) -> None:
        ours, _ = servers
        keep(file, mode, url=ours.url, token=TOKEN)
        assert main(["jobs", "list"]) == 1
        said = capsys.readouterr().err
        assert f"(mode {mode:o})" in said
        assert f"chmod 600 {file}" in said
        assert TOKEN not in said
        assert ours.got == []

    def test_one_without_a_token_in_use_may_be_open(
        self, servers: tuple[Recorder, Recorder], file: Path
    ) -> None:
        ours, _ = servers
        keep(file, 0o644, url=ours.url, project="first")
        assert Starling(token=TOKEN).project == "first"

    @pytest.mark.parametrize("content", ["{", "[]", '"x"', "\xff"])
    def test_one_that_is_no_json_is_a_sentence(self, file: Path, content: str) -> None:
        file.write_bytes(content.encode("latin-1"))
        with pytest.raises(StarlingError, match="cannot be read"):
            Starling()

    def test_an_address_that_is_none_is_a_sentence(self, file: Path) -> None:
        for address in ("example.org", "file:///etc/passwd", "http://a:b"):
            with pytest.raises(StarlingError, match=f"{address} is no"):
                Starling(address, TOKEN)

    @pytest.mark.parametrize(
        ("variable", "place"),
        [("", "home/.config"), ("relative", "home/.config"), ("{home}/own", "home/own")],
    )
    def test_it_is_where_the_desktop_keeps_settings(self, tmp_path: Path, variable: str, place: str) -> None:
        home = tmp_path / "home"
        program = "from client import starling; print(starling.CONFIG)"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"HOME": str(home), "XDG_CONFIG_HOME": variable.format(home=home)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == str(tmp_path / place / "starling.json")
