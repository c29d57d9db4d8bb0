"""Addresses of the API, of the pages about it, and of what Prometheus reads."""

from django.urls import include, path

from webapp.api import metrics, rest, views

pages = [
    path("account/tokens/", views.token_list, name="tokens"),
    path("account/tokens/<str:token_id>/revoke/", views.token_revoke, name="token_revoke"),
    path("api/", views.reference_page, name="reference"),
    path("api/client", views.client, name="client"),
    path("api/command", views.command, name="command"),
    path("p/<slug:slug>/jobs/<str:job_id>/tensorboard", views.job_tensorboard, name="job_tensorboard"),
]

urlpatterns = [
    path("metrics", metrics.metrics, name="metrics"),
    path("", include((pages, "api"))),
    path("api/v1/", rest.urls()),
    path("api/<path:rest>", rest.nothing_here, name="api_nothing_here"),
]
