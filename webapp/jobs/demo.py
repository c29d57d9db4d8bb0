"""The demo of a fresh installation: an account, a project, and a running job."""

from django.db import transaction

from webapp.accounts.models import User
from webapp.accounts.services import create_person, one_time_sign_in_path
from webapp.jobs.form.presets import presets
from webapp.jobs.services import submit_job

DEMO_EMAIL = "demo@starling.localhost"
DEMO_STEPS = 10_000_000
"""Some hours of work, so that a visitor in the first hour sees the job run, if its dollar lasts that long."""


@transaction.atomic
def create_demo() -> None:
    """Create the demo account with its project and job in one transaction: a start may be killed at any
    moment."""
    user = create_person(DEMO_EMAIL)
    spec = presets()["hopper-simulated"].spec
    stop = spec.training.stop.model_copy(update={"env_steps": DEMO_STEPS})
    training = spec.training.model_copy(update={"stop": stop})
    demo = spec.model_copy(update={"name": "Demo: Hopper on the simulated cloud", "training": training})
    submit_job(project=user.projects.get(), user=user, spec=demo, idempotency_key="demo")


def demo_sign_in_path() -> str | None:
    """Return a fresh one-time sign-in path of the demo account; None once any user has signed in here.

    Until then each start prints a new path, so a lost one locks no one out.
    """
    if User.objects.filter(last_login__isnull=False).exists():
        return None
    user = User.objects.filter(email=DEMO_EMAIL, is_active=True).first()
    return one_time_sign_in_path(user) if user is not None else None
