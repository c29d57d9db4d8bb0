"""Connections as staff read them.

Sealed secrets have no page. The external id is left out, because only the account's owner and this installation know
it. So is the report of a test, because it repeats what a cloud answered.
"""

from webapp.read_only_admin import ReadOnlyAdmin


class ConnectionAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "project", "kind", "region", "emulated", "test_state", "created_at")
    list_select_related = ("project",)
    list_filter = ("kind", "test_state", "emulated")
    search_fields = ("id__exact", "name")
    search_help_text = "Id or name"
    ordering = ("-created_at",)
    fields = (
        *("id", "name", "project", "kind", "region", "emulated", "created_by", "created_at"),
        *("role_arn", "access_key_id", "account_id"),
        *("tenant_id", "client_id", "subscription_id", "resource_group"),
        *("test_state", "test_no", "test_since"),
    )
