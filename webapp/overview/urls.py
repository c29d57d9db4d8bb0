"""Addresses of a project's overview, and of what finds things in the project."""

from django.urls import path

from webapp.overview import views

app_name = "overview"
urlpatterns = [
    path("p/<slug:slug>/", views.page, name="page"),
    path("p/<slug:slug>/spending", views.spending, name="spending"),
    path("p/<slug:slug>/find/", views.find, name="find"),
    path("p/<slug:slug>/guide/", views.guide, name="guide"),
]
