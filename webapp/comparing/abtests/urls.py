"""Addresses of A/B tests, all below their project's."""

from django.urls import path

from webapp.comparing.abtests import views

app_name = "abtests"
_BASE = "p/<slug:slug>/ab-tests/"
urlpatterns = [
    path(_BASE, views.test_list, name="list"),
    path(f"{_BASE}new/", views.test_new, name="new"),
    path(f"{_BASE}<int:test_id>/", views.test_page, name="detail"),
    path(f"{_BASE}<int:test_id>/progress", views.test_progress, name="progress"),
    path(f"{_BASE}<int:test_id>/stop/", views.test_stop, name="stop"),
]
