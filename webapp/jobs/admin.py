"""Jobs in the admin. The spec and the summary are left out: a spec may hold a scheduler's weights."""

from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.jobs.models import Job
from webapp.read_only_admin import ReadOnlyAdmin


class JobAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "project", "created_by", "observed", "reason_code", "cloud", "created_at")
    list_select_related = ("project", "created_by")
    list_filter = ("observed", "desired", "simulated", "emulated")
    search_fields = ("id__exact", "name")
    search_help_text = "Id or name"
    ordering = ("-created_at",)
    fields = (
        *("id", "name", "project", "created_by", "created_at", "archived_at", "deleted_at"),
        *("algorithm", "environment", "cloud", "simulated", "emulated"),
        *("desired", "observed", "reason_code", "reason", "since", "started_at", "finished_at"),
        *("lease_owner", "lease_epoch", "lease_expires_at", "crashes", "losses"),
        *("round_no", "env_steps", "actors", "actors_least", "actors_most", "last_seq"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("spec", "summary")
