"""A router that passes to a route what its signature declares: the project, a job in it, the caller.

    @router.get("/projects/{slug}/jobs/{job_id}", response=(200, 304), summary="One job")
    def get_job(job: ViewersJob) -> JobShape:
        return serialize_job(job)

An annotation with a `Dependency` names the function that finds the value. What that function takes from a request is
what the address names (`slug`), and what it annotates as a header or query; its other arguments are the program's own,
and no request sets them. What it raises is the answer: a project of others is not found, a role that is too low is
refused.

The response is what the route returns. `response` holds its status, if that is not 200. A route with 304 has an ETag,
and answers 304 to callers who already have that state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Header, Router
from ninja.constants import NOT_SET
from ninja.params.models import Param
from ninja.responses import Status
from ninja.signature.utils import get_path_param_names

from webapp.accounts.models import Membership, Project
from webapp.api.auth import archived_project_of, member_of, member_of_archived, project_of
from webapp.api.job_serialization import etag_of
from webapp.api.models import Caller
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in

IfNoneMatch = Annotated[
    str, Header(alias="If-None-Match", max_length=200, description="304 if the ETag is still this one.")
]
View = Callable[..., Any]


@dataclass(frozen=True)
class Dependency:
    """`find` gets the request, the role in `needs`, and its parameters that are read from the request."""

    find: View
    needs: str = ""

    def parameters(self, path: str) -> list[Parameter]:
        """The parameters of `find` that a request to this path sets. TypeError if another one has no default."""
        in_path = get_path_param_names(path)
        every = [
            parameter
            for parameter in inspect.signature(self.find, eval_str=True).parameters.values()
            if parameter.name not in ("request", "needs")
        ]
        found = [one for one in every if one.name in in_path or _is_read_from_requests(one)]
        if missing := [one.name for one in every if one not in found and one.default is Parameter.empty]:
            raise TypeError(f"{self.find.__qualname__} needs {missing}, which {path} does not name")
        return found

    def value(self, request: HttpRequest, sent: dict[str, Any]) -> Any:
        """`sent`: the values of its parameters."""
        return self.find(request, **sent, **({"needs": self.needs} if self.needs else {}))


def caller_of(request: HttpRequest) -> Any:
    return request.auth  # type: ignore[attr-defined]


def job_of(request: HttpRequest, slug: str, job_id: str, needs: str = "viewer") -> Job:
    return job_in(project_of(request, slug, needs), job_id)


Person = Annotated[Caller, Dependency(caller_of)]
ViewersProject = Annotated[Project, Dependency(project_of, "viewer")]
EditorsProject = Annotated[Project, Dependency(project_of, "editor")]
OwnersProject = Annotated[Project, Dependency(project_of, "owner")]
Viewer = Annotated[Membership, Dependency(member_of, "viewer")]
Editor = Annotated[Membership, Dependency(member_of, "editor")]
Owner = Annotated[Membership, Dependency(member_of, "owner")]
ArchivedOwner = Annotated[Membership, Dependency(member_of_archived, "owner")]
ArchivedEditorsProject = Annotated[Project, Dependency(archived_project_of, "editor")]
ArchivedOwnersProject = Annotated[Project, Dependency(archived_project_of, "owner")]
"""For what may be done in an archived project as well."""
ViewersJob = Annotated[Job, Dependency(job_of, "viewer")]
EditorsJob = Annotated[Job, Dependency(job_of, "editor")]


class ApiRouter(Router):
    """ninja's router, for routes with dependencies whose responses are what they return."""

    def add_api_operation(
        self, path: str, methods: list[str], view_func: View, *, response: Any = NOT_SET, **options: Any
    ) -> None:
        flat = _with_flat_parameters(path, view_func, has_etag=response == (200, 304))
        super().add_api_operation(
            path,
            methods,
            flat,
            response=_responses(inspect.signature(view_func, eval_str=True).return_annotation, response),
            **options,
        )
        models = self.path_operations[path].operations[-1].models
        queries = [model for model in models if model.__ninja_param_source__ == "query"]
        flat.queries = {name for model in queries for name in model.__ninja_flatten_map__}  # type: ignore[attr-defined]


def _responses(returned: Any, codes: Any) -> Any:
    """The models of responses by status, or NOT_SET for a route that makes its response itself."""
    if isinstance(returned, type) and issubclass(returned, HttpResponseBase):
        return NOT_SET
    model = get_args(returned)[0] if get_origin(returned) is Status else returned
    statuses = (200,) if codes is NOT_SET else (codes,) if isinstance(codes, int) else codes
    return {code: None if code in (204, 304) else model for code in statuses}


def _with_flat_parameters(path: str, view: View, has_etag: bool) -> View:
    """The view with the parameters of its dependencies in place of them."""
    signature = inspect.signature(view, eval_str=True)
    given = {name: found for name, one in signature.parameters.items() if (found := _dependency(one))}
    reads = {name: found.parameters(path) for name, found in given.items()}
    shown = {"request": Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=HttpRequest)}
    for name, parameter in signature.parameters.items():
        for one in reads.get(name, [parameter]):
            shown.setdefault(one.name, one)
    if has_etag:
        kind = Parameter.KEYWORD_ONLY
        shown["response"] = Parameter("response", kind, annotation=HttpResponse)
        shown["if_none_match"] = Parameter("if_none_match", kind, default="", annotation=IfNoneMatch)

    @wraps(view)
    def called(request: HttpRequest, **sent: Any) -> Any:
        values = {
            name: found.value(request, {parameter.name: sent[parameter.name] for parameter in reads[name]})
            for name, found in given.items()
        }
        own = {name: sent[name] for name in signature.parameters if name in sent and name not in given}
        if "request" in signature.parameters:
            own["request"] = request
        answer = view(**own, **values)
        return _unless_known(sent["response"], answer, sent["if_none_match"]) if has_etag else answer

    parameters = sorted(shown.values(), key=lambda one: (one.kind, one.default is not Parameter.empty))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _dependency(parameter: Parameter) -> Dependency | None:
    return next((one for one in get_args(parameter.annotation) if isinstance(one, Dependency)), None)


def _is_read_from_requests(parameter: Parameter) -> bool:
    """Whether it is annotated as a header, a query or the like, or is the response to write headers into."""
    annotation = parameter.annotation
    return annotation is HttpResponse or any(isinstance(argument, Param) for argument in get_args(annotation))


def _unless_known(response: HttpResponse, shape: Any, if_none_match: str) -> Status[Any]:
    """The response with its ETag, or 304 if the caller has that version."""
    response["ETag"] = tag = etag_of(shape)
    return Status(304, None) if tag in if_none_match else Status(200, shape)
