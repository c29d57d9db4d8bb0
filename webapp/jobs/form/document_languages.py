"""Documents in JSON, TOML and YAML, as files and requests bring them: what one holds, within bounds.

Senders are not trusted: YAML has no aliases and makes no objects, and nothing nests deeper than DEEPEST, so no short
document becomes a large one and no reader of the result runs out of stack.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Literal

import yaml

from webapp.http.request_bodies import VALUES_LIMIT

Language = Literal["JSON", "TOML", "YAML"]
DEEPEST = 50
LANGUAGES: dict[str, Language] = {".json": "JSON", ".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}
MEDIA_TYPES: dict[str, Language] = {
    "application/toml": "TOML",
    "application/yaml": "YAML",
    "application/x-yaml": "YAML",
    "text/yaml": "YAML",
}
_TOO_DEEP = f"it nests deeper than {DEEPEST} tables"
# tomllib takes quadratic time for a key of many parts.
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:"[^"\n]*"|'[^'\n]*'|[\w-]++)[ \t]*+\.[ \t]*+){{{DEEPEST}}}""", re.ASCII
)


_TAG = "tag:yaml.org,2002:"


class _JsonLoader(yaml.CSafeLoader):
    """YAML whose values are those of JSON. Its own numbers in base 60 take quadratic time, and its dates no field."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}
    yaml_constructors = {
        kind: yaml.CSafeLoader.yaml_constructors[kind]
        for kind in (None, *(_TAG + name for name in ("map", "seq", "str")))
    }


def _add_scalar(name: str, pattern: str, read: Callable[[str], Any]) -> None:
    _JsonLoader.add_implicit_resolver(_TAG + name, re.compile(rf"^(?:{pattern})$"), None)

    def construct(loader: Any, node: Any) -> Any:
        return read(loader.construct_scalar(node))

    _JsonLoader.add_constructor(_TAG + name, construct)


_add_scalar("null", r"null|Null|NULL|~|", lambda _: None)
_add_scalar("bool", r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true")
_add_scalar("int", r"[-+]?[0-9]+", int)
_add_scalar("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float)


def language_of(name: str, default: Language) -> Language:
    """The language that the file's ending names."""
    return LANGUAGES.get(PurePath(name).suffix.lower(), default)


def parse(content: bytes, language: Language) -> Any:
    """What the document holds. Raises ValueError, whose text says where it is wrong."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8") from None
    try:
        document = _READ[language](text)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}, {error.msg[:1].lower()}{error.msg[1:]}") from None
    except yaml.YAMLError as error:
        raise ValueError(_yaml_fault(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_depth(document)
    return document


def _toml(text: str) -> Any:
    if _LONG_KEY.search(text):
        raise ValueError(_TOO_DEEP)
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_JsonLoader)):
        if isinstance(event, yaml.AliasEvent):
            line = f"line {event.start_mark.line + 1}" if event.start_mark else "it"
            raise ValueError(f"{line} has an alias (*); write what it stands for instead")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(_TOO_DEEP)
        if count > 2 * VALUES_LIMIT:  # a key and its value
            raise ValueError(f"it holds more than {VALUES_LIMIT:,} values")
    return yaml.load(text, Loader=_JsonLoader)


_READ: dict[Language, Callable[[str], Any]] = {"JSON": json.loads, "TOML": _toml, "YAML": _yaml}


def _yaml_fault(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"at line {mark.line + 1}, column {mark.column + 1}, " if mark is not None else ""
    return where + (getattr(error, "problem", None) or "it cannot be read")


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)
