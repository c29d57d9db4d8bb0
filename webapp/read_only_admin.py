"""A read-only Django admin for the installation's staff: lists of rows and a page for each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

View = Callable[..., HttpResponseBase]


class StaffSite(admin.AdminSite):
    """An admin site with addresses for registered tables only. People sign in and out on the usual pages."""

    site_header = site_title = "Starling administration"
    index_title = "Read-only tables"
    enable_nav_sidebar = False

    def admin_view(self, view: View, cacheable: bool = False) -> Any:
        """The view for staff. Others get a 404, as do the reports of the whole installation."""

        @login_required
        @require_safe
        @never_cache
        @wraps(view)
        def for_staff(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not self.has_permission(request):
                raise Http404("There is no such page.")
            return view(request, *args, **kwargs)

        return for_staff

    def get_urls(self) -> list[Any]:
        addresses: list[Any] = [
            path("", self.admin_view(self.index), name="index"),
            path("<slug:app_label>/", self.admin_view(self.app_index), name="app_list"),
        ]
        for model, model_admin in self._registry.items():
            place = f"{model._meta.app_label}/{model._meta.model_name}/"
            addresses.append(path(place, include(model_admin.get_urls())))
        return addresses


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's class takes no type argument at run time
    """One table. `fields` names every column that a row's page shows; other columns are never shown."""

    actions = None
    show_facets = admin.ShowFacets.NEVER
    # Long tables stay quick: no second count of all rows, and no order that has no index.
    show_full_result_count = False
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 50
    view_on_site = False

    def get_urls(self) -> list[Any]:
        table = f"{self.opts.app_label}_{self.opts.model_name}"
        for_staff = self.admin_site.admin_view
        return [
            path("", for_staff(self.changelist_view), name=f"{table}_changelist"),
            path("<path:object_id>/change/", for_staff(self.change_view), name=f"{table}_change"),
        ]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # Django also filters by any other column, which would reveal hidden values letter by letter.
        return lookup.partition("__")[0] in self.list_filter

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.admin_site.has_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.admin_site.has_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
