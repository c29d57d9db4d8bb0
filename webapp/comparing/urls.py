"""Addresses of comparisons, groups, sweeps and the board of goals."""

from django.urls import path

from webapp.comparing import views

app_name = "comparing"
urlpatterns = [
    path("p/<slug:slug>/compare/", views.page, name="page"),
    path("p/<slug:slug>/compare/seeds/", views.add_seeds, name="add_seeds"),
    path("p/<slug:slug>/groups/", views.groups, name="groups"),
    path("p/<slug:slug>/groups/<int:group_id>/", views.group, name="group"),
    path("p/<slug:slug>/goals/", views.goals, name="goals"),
    path("p/<slug:slug>/sweeps/new/", views.sweep_new, name="sweep_new"),
]
