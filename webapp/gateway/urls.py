"""Addresses about machines that call for a job. Where they call at is `entrance`."""

from django.urls import path

from webapp.gateway import views

app_name = "gateway"
urlpatterns = [
    path("p/<slug:slug>/jobs/<str:job_id>/machines", views.machines_panel, name="machines"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/join", views.machine_join, name="join"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/actor.zip", views.actor_package, name="package"),
]
