"""The API's description for its page: by subject, each address with its parameters and responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from webapp.api.rest import api


@dataclass(frozen=True)
class Parameter:
    name: str
    place: str
    kind: str
    required: bool
    words: str


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    summary: str
    words: str
    scope: str
    parameters: tuple[Parameter, ...]
    body: str
    answers: tuple[tuple[str, str], ...]


@cache
def groups() -> dict[str, list[Operation]]:
    """The operations by subject, in the order of the routes."""
    schema = api.get_openapi_schema()
    scope_of = scopes()
    by_tag: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(
                _operation(path, method, operation, scope_of[operation["operationId"]])
            )
    return by_tag


def _operation(path: str, method: str, one: dict[str, Any], scope: str) -> Operation:
    parameters = tuple(
        Parameter(
            name=row["name"],
            place=row["in"],
            kind=_kind(row["schema"]),
            required=row["required"],
            words=row.get("description", ""),
        )
        for row in one["parameters"]
    )
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    answers = tuple(
        (str(status), _answer(response)) for status, response in one["responses"].items() if status != "4XX"
    )
    return Operation(
        one["operationId"],
        method.upper(),
        path,
        one["summary"],
        one.get("description", ""),
        scope,
        parameters,
        _kind(body) if body else "",
        answers,
    )


@cache
def models() -> dict[str, list[Parameter]]:
    """The models of requests and responses, by name, with their fields."""
    shown = {}
    for name, schema in api.get_openapi_schema()["components"]["schemas"].items():
        required = schema.get("required", ())
        shown[_short(name)] = [
            Parameter(field, "", _kind(value), field in required, value.get("description", ""))
            for field, value in schema.get("properties", {}).items()
        ]
    return dict(sorted(shown.items()))


def scopes() -> dict[str, str]:
    """The scope that each described operation requires, by its id."""
    return {
        api.get_openapi_operation_id(operation): _scope_of(operation.auth_callbacks)
        for bound in api._get_bound_routers()
        for view in bound.path_operations.values()
        for operation in view.operations
        if operation.include_in_schema
    }


def _scope_of(authenticators: Sequence[Any]) -> str:
    return str(authenticators[0].scope)


def _answer(response: dict[str, Any]) -> str:
    for content_type, content in response.get("content", {}).items():
        return _kind(content["schema"]) if content_type == "application/json" else "a file"
    return "nothing"


def _short(name: str) -> str:
    return name.replace("Shape_", "").removesuffix("Shape")


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a word or two."""
    if "$ref" in schema:
        return _short(str(schema["$ref"]).rpartition("/")[2])
    if "items" in schema:
        return f"list of {_kind(schema['items'])}"
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
    return str(schema.get("format") or schema.get("type", "object"))
