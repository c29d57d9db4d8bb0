"""A request sets what a route declares, and no internal argument of the functions behind it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from ninja.params.models import Param
from ninja.signature.utils import get_path_param_names

from tests.webapp.api.test_doors import Scene, body_for, operations
from tests.webapp.api_callers import ApiCaller
from webapp.api.rest import api
from webapp.api.router import Dependency
from webapp.money.budgets import create_budget
from webapp.money.models import Budget
from webapp.overview.projects.services import archive_project

pytestmark = pytest.mark.django_db


def _routes() -> Iterator[tuple[str, str, Any]]:
    """Method, path and function of each described route, as it is written in its module."""
    for bound in api._get_bound_routers():
        for path, view in bound.path_operations.items():
            for operation in view.operations:
                if operation.include_in_schema:
                    yield operation.methods[0], path, inspect.unwrap(operation.view_func)


def _written(route: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(route, eval_str=True).parameters)


def _dependencies(route: Any) -> list[Dependency]:
    arguments = [one for parameter in _written(route).values() for one in get_args(parameter.annotation)]
    return [one for one in arguments if isinstance(one, Dependency)]


def _source(parameter: inspect.Parameter) -> Param | None:
    return next((one for one in get_args(parameter.annotation) if isinstance(one, Param)), None)


def _declared(path: str, route: Any) -> set[str]:
    """What may be in the address or the headers: names in the path, and what is written as a parameter."""
    written = {name: one for name, one in _written(route).items() if one.name != "request"}
    own = {name: one for name, one in written.items() if not _is_dependency(one)}
    of_dependencies = {
        name: one
        for dependency in _dependencies(route)
        for name, one in _written(dependency.find).items()
        if _source(one) is not None
    }
    known = {**own, **of_dependencies}
    aliases = {getattr(_source(one), "alias", None) or name for name, one in known.items()}
    return aliases | set(get_path_param_names(path)) | {"If-None-Match"}


def _is_dependency(parameter: inspect.Parameter) -> bool:
    return any(isinstance(one, Dependency) for one in get_args(parameter.annotation))


def test_every_parameter_of_an_operation_is_declared_by_its_route() -> None:
    described = api.get_openapi_schema()["paths"]
    undeclared, looked_at = [], 0
    for method, path, route in _routes():
        for parameter in described[f"/api/v1{path}"][method.lower()]["parameters"]:
            looked_at += 1
            if parameter["name"] not in _declared(path, route):
                undeclared.append((method, path, parameter["name"]))
    assert undeclared == []
    assert looked_at > 300


def test_no_internal_argument_is_taken_from_an_address(settings: Any) -> None:
    settings.STARLING_API_REQUESTS_A_MINUTE = 10_000
    scene = Scene()
    mine = ApiCaller(scene.people["owner"])
    by_address = {(one.method, one.path): one for one in operations().values()}
    tried = 0
    for method, path, route in _routes():
        operation = by_address[method, f"/api/v1{path}"]
        names = {name for one in _dependencies(route) for name in _written(one.find)} | {"user", "archived"}
        described = {one.name for one in operation.parameters if one.place == "query"}
        address = scene.address(operation.path)
        for name in sorted(names - described - {"request"}):
            tried += 1
            joined = "&" if "?" in address else "?"
            answer = mine(method, f"{address}{joined}{name}=true", body_for(operation))
            assert answer.status_code == 422, (method, path, name, answer.status_code)
            assert [one["path"] for one in answer.json()["errors"]] == [f"query.{name}"]
    assert tried > 300


def test_an_archived_project_cannot_be_changed_by_a_word_in_the_address() -> None:
    scene = Scene()
    owner = scene.people["owner"]
    budget = create_budget(project=scene.project, name="Held", limit_picodollars=10**12)
    archive_project(project=scene.project, user=owner, end_running=True)
    mine = ApiCaller(owner)
    place = f"/projects/{scene.project.slug}/budgets/{budget.pk}"
    for word in ("archived=true", "archived=1", "needs=viewer"):
        raised = mine("PUT", f"{place}?{word}", {"limit_usd": "1000000"})
        closed = mine("DELETE", f"{place}?{word}")
        assert [raised.status_code, closed.status_code] == [422, 422]
    assert mine("PUT", place, {"limit_usd": "1000000"}).status_code == 403
    held = Budget.objects.get(pk=budget.pk)
    assert held.limit_picodollars == 10**12
