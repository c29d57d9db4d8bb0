"""The form's fields of a simulated cloud: every cloud there is can be chosen, and nothing else."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from tests.factories import make_project, make_user
from tests.webapp.jobs.form.test_forms import posted
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job


def sent(client: Client, **changes: Any) -> Any:
    project = make_project(user := make_user())
    client.force_login(user)
    form = job_form(start=presets()["hopper-simulated"].spec)
    return client.post(f"/p/{project.slug}/jobs/new/", posted(form, **changes))


@pytest.mark.django_db
@pytest.mark.parametrize("profile", ["lambda", "aci-today", "one-machine", "nitro-cluster"])
def test_a_job_on_any_cloud_starts_from_the_form(client: Client, profile: str) -> None:
    assert sent(client, platform__simulated__profile=profile).status_code == 302
    assert Job.objects.get().parsed_spec().platform == SimulatedOptions(profile=profile)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("profile", "lambda-1999", "named 'lambda-1999'"),
        ("stack", "java", "named 'java'"),
        ("learner_sku", "c5.900xlarge", "price for 'c5.900xlarge'"),
        ("cache_sku", "lambda.request", "lambda.request is not"),
        ("provisioned", "-1", "must be"),
        ("seed", "x", "must be"),
    ],
)
def test_what_no_cloud_has_is_refused_with_words(client: Client, field: str, value: str, words: str) -> None:
    answer = sent(client, **{f"platform__simulated__{field}": value})
    assert answer.status_code == 422
    assert words in unescape(answer.content.decode())
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_only_functions_can_be_kept_warm(client: Client) -> None:
    changes = {"platform__simulated__profile": "aci-today", "platform__simulated__provisioned": "4"}
    answer = sent(client, **changes)
    assert answer.status_code == 422
    assert "aci-today offers no" in unescape(answer.content.decode())


def test_clouds_and_software_are_chosen_from_lists_that_say_what_they_are() -> None:
    form = job_form(start=presets()["hopper-simulated"].spec)
    field = form.fields["platform.simulated.profile"]
    assert next(name for name, _ in field.choices) == "lambda"
    assert dict(field.choices)["aci-today"] == profiles.load("aci-today").title
    assert all(one.words for one in field.named)
    assert ("starling-stack", "Starling's own engine") in form.fields["platform.simulated.stack"].choices
