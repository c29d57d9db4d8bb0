"""The Celery application of the worker and of beat, and of whoever sends a task.

Messages are hints that carry ids; the database holds what is to be done. Losing one costs a few seconds.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("starling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
