"""Addresses of reward surfaces, below their job."""

from django.urls import path

from webapp.jobs.surfaces import views

app_name = "surfaces"
urlpatterns = [
    path("p/<slug:slug>/jobs/<str:job_id>/surfaces", views.surfaces, name="surfaces"),
    path("p/<slug:slug>/jobs/<str:job_id>/surfaces/ask/", views.surface_ask, name="ask"),
]
