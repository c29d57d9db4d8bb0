"""Addresses of memory profiles, below their connection or below `simulated`."""

from django.urls import path

from webapp.resources.profiling import views

app_name = "profiling"
_BASE = "p/<slug:slug>/clouds/<str:connection_id>/profile/"
urlpatterns = [
    path(_BASE, views.profile_page, name="page"),
    path(f"{_BASE}result", views.profile_result, name="result"),
    path(f"{_BASE}cost", views.profile_cost, name="cost"),
]
