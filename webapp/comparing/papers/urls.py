"""Addresses of experiments. They belong to the installation, not to a project."""

from django.urls import path

from webapp.comparing.papers import views

app_name = "papers"
urlpatterns = [
    path("papers/", views.figure_list, name="list"),
    path("papers/<slug:name>/", views.experiment, name="experiment"),
]
