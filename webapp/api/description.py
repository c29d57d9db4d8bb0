"""The OpenAPI description of the API, in the form that generators of clients can read.

A model that requests and responses share has two schemas where they differ: money may be sent as a number and is
returned as text. The one of responses is then named `…Output`. What a request has to contain is required in its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from pydantic.json_schema import JsonSchemaMode

from webapp.api import problems

_PLACE = "#/components/schemas/"
_PROBLEM = f"{_PLACE}Problem"


class Description(OpenAPISchema):
    """ninja's description, with schemas of requests and of responses kept apart, and errors as problem documents."""

    def __init__(self, api: NinjaAPI, path_prefix: str, base_url: str) -> None:
        self._mode: JsonSchemaMode = "validation"
        self._by_mode: dict[str, dict[str, Any]] = {"validation": {}, "serialization": _problem_schemas()}
        super().__init__(api, path_prefix)
        self["servers"] = [{"url": base_url}]
        self["info"]["license"] = {"name": "As Starling itself"}
        content = {problems.MEDIA_TYPE: {"schema": {"$ref": _PROBLEM}}}
        for operation in self._operations():
            operation["responses"]["4XX"] = {"description": "What, why and what to do", "content": content}
        self["components"]["schemas"] = self._joined_schemas()
        for part in _objects(self):
            _make_readable(part)
        self._require_discriminators()

    def add_schema_definitions(self, definitions: dict[str, Any]) -> None:
        self._by_mode[self._mode].update(definitions)

    def _create_schema_from_model(
        self,
        model: Any,
        by_alias: bool = True,
        remove_level: bool = True,
        mode: JsonSchemaMode = "validation",
    ) -> Any:
        self._mode = mode
        try:
            return super()._create_schema_from_model(model, by_alias, remove_level, mode)
        finally:
            self._mode = "validation"

    def _operations(self) -> Iterator[dict[str, Any]]:
        for path in self["paths"].values():
            yield from path.values()

    def _joined_schemas(self) -> dict[str, Any]:
        """All schemas. Responses are pointed to their own where it differs from the request's of that name."""
        sent, returned = self._by_mode["validation"], self._by_mode["serialization"]
        differ = {name for name in returned if name in sent and returned[name] != sent[name]}
        while more := {
            name
            for name in returned
            if name in sent and name not in differ and not differ.isdisjoint(_named_in(returned[name]))
        }:
            differ |= more
        for part in (returned, *(operation["responses"] for operation in self._operations())):
            for schema in _objects(part):
                name = str(schema.get("$ref", "")).removeprefix(_PLACE)
                if name in differ:
                    schema["$ref"] = f"{_PLACE}{name}Output"
        for name in differ:
            returned[name]["title"] = f"{name}Output"
        return sent | {f"{name}Output" if name in differ else name: one for name, one in returned.items()}

    def _require_discriminators(self) -> None:
        """A request has to name the kind that it means, though each kind has itself as its default."""
        schemas = self["components"]["schemas"]
        for schema in list(_objects(self)):
            if "mapping" in (chosen := schema.get("discriminator", {})):
                for place in chosen["mapping"].values():
                    kind, field = schemas[place.removeprefix(_PLACE)], chosen["propertyName"]
                    kind["required"] = sorted({*kind.get("required", ()), field})


def _make_readable(schema: dict[str, Any]) -> None:
    """Leave out what generators fail at, an object as the default of a choice, and mend mappings of responses."""
    if isinstance(schema.get("default"), dict) and not schema.keys().isdisjoint(
        ("oneOf", "anyOf", "allOf", "$ref")
    ):
        del schema["default"]
    mapping = schema.get("discriminator", {}).get("mapping", {})
    for name, place in mapping.items():
        member = next(
            (one["$ref"] for one in schema.get("oneOf", ()) if one.get("$ref") == f"{place}Output"), place
        )
        mapping[name] = member


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries within a document."""
    if isinstance(value, dict):
        yield value
        for item in list(value.values()):
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _named_in(schema: Any) -> set[str]:
    return {str(one["$ref"]).removeprefix(_PLACE) for one in _objects(schema) if "$ref" in one}


def _problem_schemas() -> dict[str, Any]:
    schema = problems.Problem.model_json_schema(ref_template=f"{_PLACE}{{model}}", mode="serialization")
    return {**schema.pop("$defs"), "Problem": schema}
