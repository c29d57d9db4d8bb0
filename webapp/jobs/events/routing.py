"""Addresses of sockets."""

from django.urls import path

from webapp.jobs.events.consumers import JobConsumer

websocket_urlpatterns = [path("ws/v1/jobs/<str:job_id>/", JobConsumer.as_asgi())]
