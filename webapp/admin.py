"""The tables that staff may read under /admin/: lists of rows, and a page for each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.access import signed_in
from webapp.connections.models import Connection
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.money.models import Charge

View = Callable[..., HttpResponseBase]


class StaffSite(admin.AdminSite):
    """An admin site with addresses for registered tables only. People sign in and out on the usual pages."""

    site_header = site_title = "Starling administration"
    index_title = "Read-only tables"
    enable_nav_sidebar = False

    def admin_view(self, view: View, cacheable: bool = False) -> Any:
        """The view for staff. Others get a 404, as do the reports of the whole installation."""

        @signed_in
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


class JobAdmin(ReadOnlyAdmin):
    """Without the spec and the summary: a spec may hold a scheduler's weights."""

    list_display = ("id", "name", "project", "created_by", "observed", "reason_code", "cloud", "created_at")
    list_select_related = ("project", "created_by")
    list_filter = ("observed", "desired", "simulated", "emulated")
    search_fields = ("id__exact", "name")
    search_help_text = "Id or name"
    ordering = ("-created_at",)
    fields = (
        *("id", "name", "project", "created_by", "created_at", "archived_at", "deleted_at"),
        *("algorithm", "subject", "cloud", "simulated", "emulated"),
        *("desired", "observed", "reason_code", "reason", "since", "started_at", "finished_at"),
        *("lease_owner", "lease_epoch", "lease_expires_at", "crashes", "losses"),
        *("round_no", "total_progress", "actors", "actors_least", "actors_most", "last_seq"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("spec", "summary")


class ChargeAdmin(ReadOnlyAdmin):
    """What each call reserved and what it cost."""

    list_display = (
        *("id", "job", "name", "round_no", "kind", "state", "basis"),
        *("reserved_usd", "settled_usd", "opened_at"),
    )
    list_select_related = ("account",)
    list_filter = ("state", "kind", "basis")
    search_fields = ("account__job_id__exact",)
    search_help_text = "Id of a job"
    ordering = ("-pk",)
    readonly_fields = ("job", "reserved_usd", "settled_usd", "assumed_usd")
    fields = (
        *("id", "job", "name", "epoch", "round_no", "kind", "state", "basis"),
        *("reserved_usd", "settled_usd", "assumed_usd", "opened_at", "resolved_at", "corrected_at"),
        *("usage", "lines"),
    )

    @admin.display(description="job")
    def job(self, charge: Charge) -> str:
        return charge.account.job_id

    @admin.display(description="reserved (USD)")
    def reserved_usd(self, charge: Charge) -> str:
        return _usd(charge.reserved_picodollars)

    @admin.display(description="settled (USD)")
    def settled_usd(self, charge: Charge) -> str:
        return _usd(charge.settled_picodollars)

    @admin.display(description="assumed at first (USD)")
    def assumed_usd(self, charge: Charge) -> str:
        return _usd(charge.assumed_picodollars)


def _usd(amount_picodollars: int | None) -> str:
    return "-" if amount_picodollars is None else exact_usd(amount_picodollars)


class ConnectionAdmin(ReadOnlyAdmin):
    """Sealed secrets have no page. The external id is left out, because only the account's owner and this installation
    know it. So is the report of a test, because it repeats what a cloud answered.
    """

    list_display = ("id", "name", "project", "kind", "region", "emulated", "test_state", "created_at")
    list_select_related = ("project",)
    list_filter = ("kind", "test_state", "emulated")
    search_fields = ("id__exact", "name")
    search_help_text = "Id or name"
    ordering = ("-created_at",)
    fields = (
        *("id", "name", "project", "kind", "region", "prefix", "emulated", "created_by", "created_at"),
        *("role_arn", "access_key_id", "account_id"),
        *("tenant_id", "client_id", "subscription_id", "resource_group"),
        *("test_state", "test_no", "test_since"),
    )


site = StaffSite()
site.register(Job, JobAdmin)
site.register(Charge, ChargeAdmin)
site.register(Connection, ConnectionAdmin)
