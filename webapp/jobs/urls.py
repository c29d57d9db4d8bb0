"""Addresses of jobs, all below their project's."""

from django.urls import path

from webapp.jobs import list_page, policy_views, views

app_name = "jobs"
urlpatterns = [
    path("p/<slug:slug>/jobs/", list_page.job_list, name="list"),
    path("p/<slug:slug>/jobs/act/", list_page.job_act, name="act"),
    path("p/<slug:slug>/jobs/views/", list_page.view_change, name="views"),
    path("p/<slug:slug>/jobs/new/", views.job_new, name="new"),
    path("p/<slug:slug>/jobs/new/forecast", views.job_forecast, name="forecast"),
    path("p/<slug:slug>/jobs/<str:job_id>/", views.job_detail, name="detail"),
    path("p/<slug:slug>/jobs/<str:job_id>/labels/", list_page.job_labels, name="labels"),
    path("p/<slug:slug>/jobs/<str:job_id>/stop/", views.job_stop, name="stop"),
    path("p/<slug:slug>/jobs/<str:job_id>/budget/", views.job_raise_budget, name="raise_budget"),
    path("p/<slug:slug>/jobs/<str:job_id>/go-on/", views.job_go_on, name="go_on"),
    path("p/<slug:slug>/jobs/<str:job_id>/stream", views.job_stream, name="stream"),
    path("p/<slug:slug>/jobs/<str:job_id>/policy", policy_views.policy_panel, name="policy"),
    path("p/<slug:slug>/jobs/<str:job_id>/policy.zip", policy_views.policy_download, name="policy_zip"),
    path("p/<slug:slug>/jobs/<str:job_id>/films/", policy_views.film_ask, name="film_ask"),
    path(
        "p/<slug:slug>/jobs/<str:job_id>/films/<int:film_id>-<str:part>.webp",
        policy_views.film_file,
        name="film",
    ),
]
