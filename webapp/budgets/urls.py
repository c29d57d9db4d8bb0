"""URLs of budgets."""

from django.urls import path

from webapp.budgets import views

app_name = "budgets"
urlpatterns = [
    path("p/<slug:slug>/budgets/", views.budget_list, name="list"),
    path("p/<slug:slug>/budgets/new/", views.budget_new, name="new"),
    path("p/<slug:slug>/budgets/<int:budget_id>/", views.budget_detail, name="detail"),
    path("p/<slug:slug>/budgets/<int:budget_id>/close/", views.budget_close, name="close"),
]
