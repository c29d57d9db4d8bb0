"""What a fresh installation shows: an account, a project, and a job whose charts move."""

from webapp.accounts.services import create_person, one_time_sign_in_path
from webapp.jobs.asking.presets import presets
from webapp.jobs.services import submit_job

DEMO_EMAIL = "demo@starling.localhost"
DEMO_STEPS = 10_000_000
"""Some hours of real work: whoever looks in the first hour sees it run, if its dollar lasts that long."""


def create_demo() -> str:
    """Make the demo account with its project and job; the path that signs in there, once."""
    user = create_person(DEMO_EMAIL)
    spec = presets()["hopper-simulated"].spec
    stop = spec.training.stop.model_copy(update={"env_steps": DEMO_STEPS})
    training = spec.training.model_copy(update={"stop": stop})
    demo = spec.model_copy(update={"name": "Demo: Hopper on the simulated cloud", "training": training})
    submit_job(project=user.projects.get(), user=user, spec=demo, idempotency_key="demo")
    return one_time_sign_in_path(user)
