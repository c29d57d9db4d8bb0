"""Addresses of reports about money."""

from django.urls import path

from webapp.money import views

app_name = "money"

urlpatterns = [path("p/<slug:slug>/jobs/<str:job_id>/cost.csv", views.cost_csv, name="cost_csv")]
