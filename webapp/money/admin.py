"""Charges in the admin: what each call reserved and what it cost."""

from __future__ import annotations

from django.contrib import admin

from webapp.money.amounts import exact_usd
from webapp.money.models import Charge
from webapp.read_only_admin import ReadOnlyAdmin


class ChargeAdmin(ReadOnlyAdmin):
    list_display = (
        *(
            "id",
            "job",
            "name",
            "round_no",
            "kind",
            "state",
            "basis",
            "reserved_usd",
            "settled_usd",
            "opened_at",
        ),
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
