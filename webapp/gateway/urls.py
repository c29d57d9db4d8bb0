"""Addresses about machines that call for a job. Where they call at is `entrance`."""

from django.urls import path

from webapp.jobs import machine_views

app_name = "gateway"
urlpatterns = [
    path("p/<slug:slug>/jobs/<str:job_id>/machines", machine_views.machines_panel, name="machines"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/join", machine_views.machine_join, name="join"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/actor.zip", machine_views.actor_package, name="package"),
]
