"""Addresses of connections, all below their project's."""

from django.urls import path

from webapp.connections import views

app_name = "connections"
urlpatterns = [
    path("p/<slug:slug>/clouds/", views.connection_list, name="list"),
    path("p/<slug:slug>/clouds/new/<str:kind>/", views.connection_new, name="new"),
    path("p/<slug:slug>/clouds/<str:connection_id>/", views.connection_detail, name="detail"),
    path("p/<slug:slug>/clouds/<str:connection_id>/identity/", views.connection_identity, name="identity"),
    path("p/<slug:slug>/clouds/<str:connection_id>/test/", views.check_connection, name="test"),
    path("p/<slug:slug>/clouds/<str:connection_id>/report", views.connection_report, name="report"),
    path("p/<slug:slug>/clouds/<str:connection_id>/set-up/", views.connection_set_up, name="set_up"),
    path("p/<slug:slug>/clouds/<str:connection_id>/take-down/", views.connection_take_down, name="take_down"),
    path("p/<slug:slug>/clouds/<str:connection_id>/steps", views.connection_steps, name="steps"),
    path(
        "p/<slug:slug>/clouds/<str:connection_id>/files/<slug:paper>",
        views.connection_policy_document,
        name="paper",
    ),
    path("p/<slug:slug>/clouds/<str:connection_id>/remove/", views.connection_remove, name="remove"),
]
