"""Addresses of reports about money."""

from django.urls import path

from webapp.budgets import views as budgets_views
from webapp.jobs.billing import bill_panel
from webapp.money import views

app_name = "money"

urlpatterns = [
    path("p/<slug:slug>/budgets/", budgets_views.budget_list, name="budgets"),
    path("p/<slug:slug>/budgets/new/", budgets_views.budget_new, name="budget_new"),
    path("p/<slug:slug>/budgets/<int:budget_id>/", budgets_views.budget_detail, name="budget"),
    path("p/<slug:slug>/budgets/<int:budget_id>/close/", budgets_views.budget_close, name="budget_close"),
    path("p/<slug:slug>/jobs/<str:job_id>/cost.csv", views.cost_csv, name="cost_csv"),
    path("p/<slug:slug>/jobs/<str:job_id>/bill", bill_panel.bill, name="bill"),
    path("p/<slug:slug>/numbers/<str:profile>/<str:stack>/", bill_panel.numbers, name="numbers"),
]
