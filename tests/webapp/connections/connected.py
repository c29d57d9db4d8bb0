"""What tests of connections have in common: made-up credentials, addresses, people and jobs."""

from typing import Any

from django.test import Client

from tests.factories import make_job, make_user
from tests.members import add_member
from tests.signed_in import signed_in
from webapp.connections.models import Connection
from webapp.job_states import Observed
from webapp.jobs.models import Job

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzzzzzzzzLAST"
KEYS = {"access_key_id": "AKIAABCDEFGHIJKLMNOP", "secret_access_key": SECRET}
AZURE_IDS = {
    "tenant_id": "11111111-0000-0000-0000-00000000000A",
    "client_id": "22222222-0000-0000-0000-000000000000",
}


def member(project: Any, role: str) -> Client:
    person = make_user()
    add_member(project, person.email, role)
    return signed_in(person)


def url(project: Any, *parts: str) -> str:
    return "/".join(("", "p", project.slug, "clouds", *parts, ""))


def using(connection: Connection, observed: str = Observed.RUNNING, name: str = "Hopper") -> Job:
    job: Job = make_job(connection.project)
    spec = {**job.spec, "platform": {"kind": "aws_lambda", "connection": connection.pk}}
    Job.objects.filter(pk=job.pk).update(spec=spec, observed=observed, name=name)
    return job
