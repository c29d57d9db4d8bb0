"""URLs of projects: all of a person's, and the settings of one."""

from django.urls import path

from webapp.overview.projects import views

app_name = "projects"
urlpatterns = [
    path("projects/", views.project_list, name="list"),
    path("p/<slug:slug>/settings/", views.settings, name="settings"),
    path("p/<slug:slug>/settings/archive/", views.archive, name="archive"),
    path("p/<slug:slug>/settings/unarchive/", views.unarchive, name="unarchive"),
]
