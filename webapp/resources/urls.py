"""Addresses of the lines about running resources."""

from django.urls import path

from webapp.resources import views

app_name = "resources"
urlpatterns = [
    path("p/<slug:slug>/clouds/standing", views.of_project, name="project"),
    path("p/<slug:slug>/jobs/<str:job_id>/standing", views.of_job, name="job"),
]
