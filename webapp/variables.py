"""What operators set: the only place that reads the process's variables, and what settings make of them.

ImproperlyConfigured says what is wrong with a value, in one sentence.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp import private_files
from webapp.data_folder import FolderRefused, close_to_others


def text(name: str, default: str) -> str:
    return os.environ.get(name, "").strip() or default


def flag(name: str) -> bool:
    word = text(name, "false").lower()
    if word not in {"1", "0", "true", "false", "yes", "no", "on", "off"}:
        raise ImproperlyConfigured(f"{name} is {word!r}; it must be true or false.")
    return word in {"1", "true", "yes", "on"}


def count(name: str, default: int, *, least: int = 1) -> int:
    word = text(name, str(default))
    if not word.isdecimal() or int(word) < least:
        raise ImproperlyConfigured(f"{name} is {word!r}; it must be a whole number, {least} or more.")
    return int(word)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    word = text(name, default).lower()
    if word not in allowed:
        raise ImproperlyConfigured(f"{name} is {word!r}; it must be {' or '.join(allowed)}.")
    return word


def words(name: str) -> list[str]:
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def networks(name: str) -> list[str]:
    """Addresses and networks of machines, as they are written."""
    given = words(name)
    for word in given:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} is {','.join(given)!r}; it must be addresses or networks, such as 127.0.0.1,10.0.0.0/8."
            ) from None
    return given


def require_own_folder(folder: Path) -> None:
    """Create the folder or close it to other users of the machine, with all that this process writes."""
    try:
        close_to_others(folder)
        reason = "" if os.access(folder, os.W_OK | os.X_OK) else "it is read-only for this user"
    except FolderRefused as refused:
        raise ImproperlyConfigured(f"STARLING_DATA is {folder}, and {refused}") from None
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise ImproperlyConfigured(
            f"STARLING_DATA is {folder}, and nothing can be written there: {reason}. Name another folder."
        )


def generated_secret_key(path: Path) -> str:
    """Return the key in `path`, created on first use."""
    if not path.exists():
        private_files.create_once(path, secrets.token_urlsafe(64))
    return path.read_text().strip()


def smtp_server(url: str) -> tuple[str, int, str, str, bool, bool]:
    """A mail server as Django wants it: host, port, user, password, TLS from the start, TLS after greeting."""
    server = urlsplit(url)
    ports = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
    if server.scheme not in ports or not server.hostname:
        raise ImproperlyConfigured(
            "STARLING_SMTP_URL is no address of a mail server. Write smtps://user:password@host,"
            " smtp://user:password@host for STARTTLS, or smtp+plain://host for a relay on this machine."
        )
    user, password = unquote(server.username or ""), unquote(server.password or "")
    port = server.port or ports[server.scheme]
    return server.hostname, port, user, password, server.scheme == "smtps", server.scheme == "smtp"
