"""Addresses of alerts and channels, below their project's; and the page for people outside it."""

from django.urls import path

from webapp.alerts import channel_views, views

app_name = "alerts"
_ALERTS = "p/<slug:slug>/alerts/"
_CHANNELS = f"{_ALERTS}channels/"
urlpatterns = [
    path(_ALERTS, views.alert_list, name="list"),
    path(f"{_ALERTS}bell", views.bell, name="bell"),
    path(f"{_ALERTS}seen/", views.seen, name="seen"),
    path(f"{_ALERTS}<int:alert_id>/acknowledge/", views.acknowledge, name="acknowledge"),
    path(f"{_ALERTS}<int:alert_id>/snooze/", views.snooze, name="snooze"),
    path(f"{_ALERTS}<int:alert_id>/settle/", views.settle, name="settle"),
    path(f"{_ALERTS}rules/", views.rule_list, name="rules"),
    path(f"{_ALERTS}rules/add/", views.rule_add, name="rule_add"),
    path(f"{_ALERTS}rules/remove/", views.rule_remove, name="rule_remove"),
    path(_CHANNELS, channel_views.channel_list, name="channels"),
    path(f"{_CHANNELS}new/<str:way>/", channel_views.channel_new, name="channel_new"),
    path(f"{_CHANNELS}<str:channel_id>/", channel_views.channel_detail, name="channel"),
    path(f"{_CHANNELS}<str:channel_id>/change/", channel_views.channel_change, name="channel_change"),
    path(f"{_CHANNELS}<str:channel_id>/test/", channel_views.channel_test, name="channel_test"),
    path(f"{_CHANNELS}<str:channel_id>/key/", channel_views.channel_key, name="channel_key"),
    path(f"{_CHANNELS}<str:channel_id>/remove/", channel_views.channel_remove, name="channel_remove"),
    path("alerts/mail/<str:token>/", channel_views.consent, name="mail_consent"),
    path(f"{_ALERTS}deliveries/<str:delivery_id>/replay/", channel_views.replay, name="replay"),
]
