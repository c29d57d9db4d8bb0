"""Addresses of the dashboard by app. Every object's address begins with its project."""

from django.urls import include, path

from webapp import admin, health

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.comparing.abtests.urls")),
    path("", include("webapp.alerts.urls")),
    path("", include("webapp.api.urls")),
    path("", include("webapp.budgets.urls")),
    path("", include("webapp.comparing.urls")),
    path("", include("webapp.connections.urls")),
    path("", include("webapp.datasets.urls")),
    path("", include("webapp.jobs.urls")),
    path("", include("webapp.overview.urls")),
    path("", include("webapp.comparing.papers.urls")),
    path("", include("webapp.reports.urls")),
    path("", include("webapp.comparing.predictions.urls")),
    path("", include("webapp.resources.profiling.urls")),
    path("", include("webapp.overview.projects.urls")),
    path("", include("webapp.schedulers.urls")),
    path("", include("webapp.sharing.urls")),
    path("", include("webapp.jobs.surfaces.urls")),
    path("", include("webapp.resources.urls")),
    path("", include("webapp.trackers.urls")),
]

handler404 = "webapp.http.responses.not_found"
handler500 = "webapp.http.responses.server_error"
