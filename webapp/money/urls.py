"""Addresses of reports about money."""

from django.urls import path

from webapp.money import bill_panel, budget_pages, views

app_name = "money"

urlpatterns = [
    path("p/<slug:slug>/budgets/", budget_pages.budget_list, name="budgets"),
    path("p/<slug:slug>/budgets/new/", budget_pages.budget_new, name="budget_new"),
    path("p/<slug:slug>/budgets/<int:budget_id>/", budget_pages.budget_detail, name="budget"),
    path("p/<slug:slug>/budgets/<int:budget_id>/close/", budget_pages.budget_close, name="budget_close"),
    path("p/<slug:slug>/jobs/<str:job_id>/cost.csv", views.cost_csv, name="cost_csv"),
    path("p/<slug:slug>/jobs/<str:job_id>/bill", bill_panel.bill, name="bill"),
    path("p/<slug:slug>/numbers/<str:profile>/<str:stack>/", bill_panel.numbers, name="numbers"),
]
