"""Addresses of schedulers, and of what decided for a job, all below their project's."""

from django.urls import path

from webapp.schedulers import views
from webapp.schedulers.views import job_decisions

app_name = "schedulers"
_BASE = "p/<slug:slug>/schedulers/"
urlpatterns = [
    path(_BASE, views.scheduler_list, name="list"),
    path(f"{_BASE}new/", views.training_new, name="new"),
    path(f"{_BASE}trainings/<int:training_id>/", views.training_page, name="training"),
    path(f"{_BASE}trainings/<int:training_id>/progress", views.training_progress, name="progress"),
    path(f"{_BASE}trainings/<int:training_id>/stop/", views.training_stop, name="stop"),
    path(f"{_BASE}<str:scheduler_id>/", views.scheduler_page, name="scheduler"),
    path(f"{_BASE}<str:scheduler_id>/<int:number>.json", views.scheduler_export, name="export"),
    path(f"{_BASE}<str:scheduler_id>/remove/", views.scheduler_remove, name="remove"),
    path("p/<slug:slug>/jobs/<str:job_id>/decisions", job_decisions, name="decisions"),
]
