"""Addresses of reports about money."""

from django.urls import path

from webapp.money import bill_panel, views

app_name = "money"

urlpatterns = [
    path("p/<slug:slug>/jobs/<str:job_id>/cost.csv", views.cost_csv, name="cost_csv"),
    path("p/<slug:slug>/jobs/<str:job_id>/bill", bill_panel.bill, name="bill"),
    path("p/<slug:slug>/numbers/<str:profile>/<str:stack>/", bill_panel.numbers, name="numbers"),
]
