"""Addresses of predictions, below their job."""

from django.urls import path

from webapp.comparing.predictions import views

app_name = "predictions"
_BASE = "p/<slug:slug>/jobs/<str:job_id>/what-if/"
urlpatterns = [
    path(_BASE, views.what_if, name="what_if"),
    path(f"{_BASE}predicted", views.predicted, name="predicted"),
    path(f"{_BASE}apply/", views.what_if_apply, name="apply"),
]
