"""What a fresh installation shows: an account, a project, and a job whose charts move."""

from django.db import transaction

from webapp.accounts.models import User
from webapp.accounts.services import create_person, one_time_sign_in_path
from webapp.jobs.form.presets import presets
from webapp.jobs.services import submit_job

DEMO_EMAIL = "demo@starling.localhost"
DEMO_STEPS = 10_000_000
"""Some hours of real work: whoever looks in the first hour sees it run, if its dollar lasts that long."""


@transaction.atomic
def create_demo() -> None:
    """Make the demo account with its project and job, or nothing of them: a start may be killed at any moment."""
    user = create_person(DEMO_EMAIL)
    spec = presets()["hopper-simulated"].spec
    stop = spec.training.stop.model_copy(update={"env_steps": DEMO_STEPS})
    training = spec.training.model_copy(update={"stop": stop})
    demo = spec.model_copy(update={"name": "Demo: Hopper on the simulated cloud", "training": training})
    submit_job(project=user.projects.get(), user=user, spec=demo, idempotency_key="demo")


def demo_sign_in_path() -> str | None:
    """A fresh path that signs in to the demo account, once; None as soon as anyone has ever signed in here.

    Until then each start gives one: whoever lost the first would be locked out.
    """
    if User.objects.filter(last_login__isnull=False).exists():
        return None
    user = User.objects.filter(email=DEMO_EMAIL, is_active=True).first()
    return one_time_sign_in_path(user) if user is not None else None
