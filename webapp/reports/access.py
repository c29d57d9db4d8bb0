"""Access to reports: members see those of their project, staff those of the whole installation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from webapp.accounts.models import Project

View = Callable[..., HttpResponseBase]


def staff_page(view: View) -> View:
    """Decorate a view of the whole installation: people who are not staff get a 404."""

    @login_required
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_staff:
            raise Http404("There is no such page.")
        return view(request, None, *args, **kwargs)

    return wrapped


def address(name: str, project: Project | None, *more: Any) -> str:
    """The address of a page of reports, the project's or the installation's."""
    if project is not None:
        return reverse(f"reports:{name}", args=[project.slug, *more])
    return reverse(f"reports:installation_{name}", args=list(more))
