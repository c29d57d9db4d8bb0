"""Addresses of trackers, all below their project's."""

from django.urls import path

from webapp.trackers import views

app_name = "trackers"
_BASE = "p/<slug:slug>/trackers/"
urlpatterns = [
    path(_BASE, views.tracker_list, name="list"),
    path(f"{_BASE}<str:tracker>/", views.tracker_page, name="tracker"),
    path(f"{_BASE}<str:tracker>/remove/", views.tracker_remove, name="remove"),
]
