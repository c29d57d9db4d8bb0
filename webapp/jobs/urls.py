"""URLs of jobs, all below their project's."""

from django.urls import path

from webapp.jobs import job_page, machines, views
from webapp.jobs.billing import bill_panel, cost_csv
from webapp.jobs.form import form_page
from webapp.jobs.list import list_page
from webapp.jobs.policies import policy_views

app_name = "jobs"
urlpatterns = [
    path("p/<slug:slug>/jobs/", list_page.job_list, name="list"),
    path("p/<slug:slug>/jobs/act/", list_page.job_act, name="act"),
    path("p/<slug:slug>/jobs/views/", list_page.view_change, name="views"),
    path("p/<slug:slug>/jobs/new/", form_page.job_new, name="new"),
    path("p/<slug:slug>/jobs/new/forecast", form_page.job_forecast, name="forecast"),
    path("p/<slug:slug>/jobs/new/checks", form_page.job_checks, name="checks"),
    path("p/<slug:slug>/jobs/new/file/", form_page.job_file, name="file"),
    path("p/<slug:slug>/jobs/new/drafts/delete/", form_page.draft_delete, name="draft_delete"),
    path("p/<slug:slug>/jobs/<str:job_id>/", job_page.job_charts, name="detail"),
    path("p/<slug:slug>/jobs/<str:job_id>/actors/", job_page.job_actors, name="actors"),
    path("p/<slug:slug>/jobs/<str:job_id>/actors/calls", job_page.job_calls, name="calls"),
    path("p/<slug:slug>/jobs/<str:job_id>/events/", job_page.job_events, name="events"),
    path("p/<slug:slug>/jobs/<str:job_id>/logs/", job_page.job_logs, name="logs"),
    path("p/<slug:slug>/jobs/<str:job_id>/logs/lines", job_page.job_log_lines, name="log_lines"),
    path("p/<slug:slug>/jobs/<str:job_id>/logs/log.jsonl", job_page.job_log_file, name="log_file"),
    path("p/<slug:slug>/jobs/<str:job_id>/cost/", job_page.job_cost, name="cost"),
    path("p/<slug:slug>/jobs/<str:job_id>/cost.csv", cost_csv.cost_csv, name="cost_csv"),
    path("p/<slug:slug>/jobs/<str:job_id>/bill", job_page.job_bill, name="bill"),
    path("p/<slug:slug>/numbers/<str:profile>/<str:stack>/", bill_panel.numbers, name="numbers"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines", machines.machines_panel, name="machines"),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/join", machines.machine_join, name="machine_join"),
    path(
        "p/<slug:slug>/jobs/<str:job_id>/machines/tokens/<int:number>/end",
        machines.machine_token_end,
        name="machine_token_end",
    ),
    path("p/<slug:slug>/jobs/<str:job_id>/machines/actor.zip", machines.actor_package, name="actor_package"),
    path("p/<slug:slug>/jobs/<str:job_id>/checkpoints/", job_page.job_checkpoints, name="checkpoints"),
    path("p/<slug:slug>/jobs/<str:job_id>/spec/", job_page.job_spec, name="spec"),
    path("p/<slug:slug>/jobs/<str:job_id>/spec.json", views.job_spec_file, name="spec_file"),
    path("p/<slug:slug>/jobs/<str:job_id>/again/", views.job_again, name="again"),
    path("p/<slug:slug>/jobs/<str:job_id>/actors/bounds/", views.job_bounds, name="bounds"),
    path("p/<slug:slug>/jobs/<str:job_id>/series", job_page.job_series, name="series"),
    path("p/<slug:slug>/jobs/<str:job_id>/labels/", list_page.job_labels, name="labels"),
    path("p/<slug:slug>/jobs/<str:job_id>/stop/", views.job_stop, name="stop"),
    path("p/<slug:slug>/jobs/<str:job_id>/budget/", views.job_raise_budget, name="raise_budget"),
    path("p/<slug:slug>/jobs/<str:job_id>/go-on/", views.job_go_on, name="go_on"),
    path("p/<slug:slug>/jobs/<str:job_id>/start-over/", views.job_start_over, name="start_over"),
    path("p/<slug:slug>/jobs/<str:job_id>/stream", views.job_stream, name="stream"),
    path("p/<slug:slug>/jobs/<str:job_id>/policy", job_page.job_policy, name="policy"),
    path("p/<slug:slug>/jobs/<str:job_id>/policy.zip", policy_views.policy_download, name="policy_zip"),
    path("p/<slug:slug>/jobs/<str:job_id>/films/", policy_views.film_ask, name="film_ask"),
    path("p/<slug:slug>/jobs/<str:job_id>/films.json", policy_views.film_list, name="films"),
    path(
        "p/<slug:slug>/jobs/<str:job_id>/films/<int:film_id>-<str:part>.webp",
        policy_views.film_file,
        name="film",
    ),
]
