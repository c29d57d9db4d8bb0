"""Addresses of reports: a project's, and those of the whole installation."""

from django.urls import path

from webapp.reports import views

app_name = "reports"

urlpatterns = [
    path("p/<slug:slug>/reports/", views.page, name="page"),
    path("p/<slug:slug>/reports/file", views.file, name="file"),
    path("p/<slug:slug>/reports/build/", views.build, name="build"),
    path("p/<slug:slug>/reports/files", views.files, name="files"),
    path("p/<slug:slug>/reports/files/<int:file_id>", views.built, name="built"),
    path("p/<slug:slug>/reports/schedules/", views.schedule, name="schedule"),
    path("p/<slug:slug>/reports/schedules/<int:schedule_id>/stop/", views.unschedule, name="unschedule"),
    path("p/<slug:slug>/reports/bills/", views.bills, name="bills"),
    path("p/<slug:slug>/reports/bills/new/", views.hand_over_bill, name="hand_over_bill"),
    path("reports/", views.installation_page, name="installation_page"),
    path("reports/file", views.installation_file, name="installation_file"),
    path("reports/build/", views.installation_build, name="installation_build"),
    path("reports/files", views.installation_files, name="installation_files"),
    path("reports/files/<int:file_id>", views.installation_built, name="installation_built"),
]
