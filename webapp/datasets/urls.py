"""Addresses of data sets, all below their project's."""

from django.urls import path

from webapp.datasets import views

app_name = "datasets"
_BASE = "p/<slug:slug>/data/"
urlpatterns = [
    path(_BASE, views.data_set_list, name="list"),
    path(f"{_BASE}new/", views.data_set_upload, name="upload"),
    path(f"{_BASE}<int:data_set_id>/", views.data_set_page, name="detail"),
    path(f"{_BASE}<int:data_set_id>/progress", views.data_set_progress, name="progress"),
    path(f"{_BASE}<int:data_set_id>/choose/", views.data_set_choose, name="choose"),
    path(f"{_BASE}<int:data_set_id>/delete/", views.data_set_delete, name="delete"),
]
