"""Which addresses a GET may ask for, and which of them no page is an example of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve

from tests.journeys.every_page import Act

PARTS = {
    *(
        "abtests:progress",
        "predictions:predicted",
        "alerts:bell",
        "connections:steps",
        "overview:spending",
        "jobs:machines",
        "jobs:calls",
        "jobs:log_lines",
        "jobs:policy",
    ),
    *("surfaces:surfaces", "jobs:bill", "profiling:result", "reports:files", "schedulers:decisions"),
    *(
        "reports:installation_files",
        "schedulers:progress",
        "datasets:progress",
        "resources:job",
        "resources:project",
    ),
}
"""Addresses of parts of a page, seen in their pages."""


FILES = {
    *(
        "api:client",
        "api:command",
        "api:job_tensorboard",
        "api_nothing_here",
        "connections:paper",
        "connections:report",
    ),
    *(
        "jobs:actor_package",
        "jobs:film",
        "jobs:films",
        "jobs:log_file",
        "jobs:policy_zip",
        "jobs:series",
        "jobs:spec_file",
    ),
    *(f"sharing:{part}" for part in ("stream", "series", "films", "film")),
    *("jobs:stream", "livez", "metrics", "jobs:cost_csv", "readyz", "reports:built", "reports:file"),
    *("reports:installation_built", "reports:installation_file", "schedulers:export"),
}
"""Addresses that answer with data."""


ONWARD = {"accounts:home", "account_confirm_login_code", "account_set_password"}
"""Addresses that only send people on: home, and ways to sign in that this site does not offer."""


def is_of_jobs(path: str) -> bool:
    """Whether jobs are what the page is about: about half of all pages."""
    return any(place in path for place in ("/jobs/", "/compare/", "/groups/", "/sweeps/"))


def one_of_each(shown: dict[str, tuple[str, Act | None]]) -> dict[str, tuple[str, Act | None]]:
    """The first of `shown` at each page, without its other states, such as an open menu or an empty list."""
    first: dict[str, str] = {}
    for name, (path, _) in shown.items():
        first.setdefault(_view_name(path), name)
    return {name: shown[name] for name in first.values()}


def _view_name(path: str) -> str:
    try:
        return resolve(path.partition("?")[0]).view_name
    except Resolver404:
        return path


def unseen(shown: Iterable[str]) -> set[str]:
    """Names of the addresses that a GET may ask for and that none of these paths is an example of."""
    seen = {resolve(path.partition("?")[0]).view_name for path in shown if not path.startswith("/nowhere")}
    return {name for name in _names(get_resolver().url_patterns) if name not in seen | PARTS | FILES | ONWARD}


def _names(patterns: Iterable[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "api_v1":
                yield from _names(pattern.url_patterns, pattern.namespace or namespace)
        elif not _only_for_posts(pattern.callback):
            yield f"{namespace}:{pattern.name}" if namespace else str(pattern.name)


def _only_for_posts(view: Callable[..., object] | None) -> bool:
    """Whether one of the view's decorators takes no GET: they keep the methods they take in their closure."""
    while view is not None:
        if ["POST"] in [cell.cell_contents for cell in view.__closure__ or ()]:
            return True
        view = getattr(view, "__wrapped__", None)
    return False
