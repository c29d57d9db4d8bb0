"""Who may follow a job live: asked when a socket opens and again while it is open."""

from importlib import import_module
from types import SimpleNamespace

from django.conf import settings
from django.contrib.auth import get_user

from webapp.jobs.models import Job

SIGNED_OUT = 4401
NOT_THERE = 4404


def refusal(session_key: str | None, job_id: str) -> int | None:
    """The code to close a socket with, or None if whoever holds this session may view the job now.

    The session is read anew each time: signing out, a new password and a lost membership all count at once.
    """
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(SimpleNamespace(session=session))
    if session_key is None or not user.is_authenticated:
        return SIGNED_OUT
    if not Job.objects.filter(pk=job_id, project__memberships__user_id=user.pk).exists():
        return NOT_THERE
    return None
