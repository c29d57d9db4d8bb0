"""What is said of a training of an agent that cannot be."""

from __future__ import annotations

import pytest

from tests.factories import make_project
from tests.webapp import scheduler_rows
from webapp.schedulers.services import TrainingRefused

pytestmark = pytest.mark.django_db


def test_an_agent_of_another_kind_of_training() -> None:
    project = make_project()
    with pytest.raises(
        TrainingRefused, match="is the agent for siren-digits; choose it, or another workload"
    ):
        scheduler_rows.ask(project, workload="siren-digits", scheduling__kind="minionsrl")
    version = scheduler_rows.make_version(project, of_data=True)
    with pytest.raises(
        TrainingRefused, match="is an agent for Breast cancer, which is trained in another way"
    ):
        scheduler_rows.ask(project, begin_with=version.key)
