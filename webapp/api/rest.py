"""The API: its routes, its description (OpenAPI 3.1), and the headers and errors of every response."""

from __future__ import annotations

import functools
import json
from importlib import import_module
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import ValidationErrorContext
from ninja.operation import Operation
from ninja.parser import Parser
from pydantic import BaseModel, ValidationError

from webapp.api import problems
from webapp.api.auth import Token
from webapp.api.description import Description
from webapp.api.routes.choices import choices
from webapp.api.tokens import record_action
from webapp.connections.sealing import Secret
from webapp.http.request_bodies import check_values
from webapp.jobs.form.document_languages import MEDIA_TYPES, parse
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.form.spec_problems import problems as sentences

VERSION = "1.0"
_SAFE = ("GET", "HEAD", "OPTIONS")
_HIDDEN = Secret("")


class NoNul(Parser):
    """Documents that databases can store: short, without NUL characters and lone surrogates.

    JSON, or what Content-Type says: a spec may be sent as it lies in a TOML or YAML file.
    """

    def parse_body(self, request: HttpRequest) -> Any:
        language = MEDIA_TYPES.get(request.content_type or "")
        if language is None:
            document = json.loads(request.body, parse_constant=_reject_constant)
        else:
            document = parse(request.body, language)
        check_values(document)
        if "\\u0000" in json.dumps(document, allow_nan=False):
            raise ValueError("no text may hold a NUL character")
        json.dumps(document, ensure_ascii=False).encode()  # fails for a lone surrogate
        return document


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


class Api(NinjaAPI):
    """The API, whose errors are problem documents, also in its description."""

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        return problems.answer(request, problems.refusal_of(exc))

    def validation_error_from_error_contexts(self, error_contexts: list[ValidationErrorContext[Any]]) -> Any:
        """Errors of a document with the form's sentences. Errors of parameters as ninja returns them."""
        for context in error_contexts:
            model, found = _document(context), context.pydantic_validation_error
            if model is not None:
                hidden = bool(model.model_config.get("hide_input_in_errors"))
                return problems.spec_refused(sentences(_inside(found, hidden), model))
        return super().validation_error_from_error_contexts(error_contexts)

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Any = None) -> Any:
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        return Description(self, prefix, settings.STARLING_BASE_URL)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The name of its function."""
        return operation.view_func.__name__


def _document(context: ValidationErrorContext[Any]) -> type[BaseModel] | None:
    """The model of the request's body, if the errors are about it."""
    model: Any = context.model
    if model.__ninja_param_source__ != "body":
        return None
    (field,) = model.model_fields.values()
    document: type[BaseModel] | None = field.annotation
    return document


def _inside(error: ValidationError, hidden: bool) -> ValidationError:
    """The same errors, with locations relative to the document instead of its parameter.

    The values are removed: they may be secrets.
    """
    lines: list[Any] = []
    for one in error.errors(include_url=False):
        sent = _HIDDEN if hidden else one["input"]
        lines.append({"type": one["type"], "loc": one["loc"][1:], "input": sent, "ctx": one.get("ctx", {})})
    return ValidationError.from_exception_data(error.title, lines)


def _sent(view: Any) -> Any:
    """The view with rate-limit headers on every response and an audit record for every change."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer: HttpResponseBase = view(request, *args, **kwargs)
        if (pace := getattr(request, "pace", None)) is not None:
            limit, left, wait_s = pace
            answer["RateLimit-Limit"], answer["RateLimit-Remaining"] = str(limit), str(left)
            answer["RateLimit-Reset"] = str(max(1, round(wait_s + 0.5)))
            if answer.status_code == 429:
                answer["Retry-After"] = answer["RateLimit-Reset"]
        if not answer.has_header("Cache-Control"):
            answer["Cache-Control"] = "no-store" if not answer.has_header("ETag") else "private, no-cache"
        caller = getattr(request, "caller", None)
        if caller is not None:
            answer["Starling-Token-Ends"] = caller.token.expires_at.isoformat()
        if caller is not None and request.method not in _SAFE and answer.status_code != 429:
            record_action(
                caller.token,
                f"{request.method} {request.path}",
                outcome=str(answer.status_code),
                address=request.META.get("REMOTE_ADDR", ""),
            )
        return answer

    # Django reads this mark from the outermost view; bearer tokens need no token of a form.
    wrapped.csrf_exempt = getattr(view, "csrf_exempt", False)  # type: ignore[attr-defined]
    return wrapped


api = Api(
    title="Starling",
    version=VERSION,
    description=(
        "Everything the pages do with jobs and money, for programs."
        " Errors are application/problem+json with what, why and fix."
        " Money is exact US dollars as text; moments are RFC 3339 in UTC."
    ),
    urls_namespace="api_v1",
    docs_url=None,
    auth=Token("read"),
    parser=NoNul(),
)
ROUTES = (
    *(
        "choices",
        "jobs",
        "job_copies",
        "drafts",
        "job_actions",
        "machines",
        "comparing",
        "ab_tests",
        "predictions",
        "goals",
        "history",
        "money",
        "budgets",
    ),
    *("schedules", "bills", "alert_rules", "channels", "trackers", "connections", "people"),
    *("reward_surfaces", "films"),
    *("schedulers", "profiles", "datasets", "links", "papers"),
)
"""The modules of `routes`, in the order of the description."""


def _with_known_parameters(view: Any) -> Any:
    """Refuses unknown query parameters: a mistyped one would silently be ignored."""
    takes: set[str] = view.queries  # of ApiRouter

    @functools.wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if strange := [name for name in request.GET if name not in takes]:
            words = "does not belong in this address. See its parameters in /api/v1/openapi.json."
            raise problems.spec_refused([SpecProblem(f"query.{name}", f"{name} {words}") for name in strange])
        return view(request, *args, **kwargs)

    return checked


api.add_decorator(_with_known_parameters, mode="operation")
for name in ROUTES:
    api.add_router("", import_module(f"webapp.api.routes.{name}").router)
api.add_router("", choices)


def urls() -> tuple[list[Any], str, str]:
    """ninja's URL patterns, with the common parts of every response."""
    patterns, app, namespace = api.urls
    for pattern in patterns:
        pattern.callback = _sent(pattern.callback)
    return patterns, app, namespace


def nothing_here(request: HttpRequest, rest: str) -> HttpResponse:
    """404 for unknown addresses of the API."""
    return problems.answer(
        request,
        problems.ApiRefused(
            404, "absent", "Nothing was found.", "The API has no such address.", "See /api/v1/openapi.json."
        ),
    )
