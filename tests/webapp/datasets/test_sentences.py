"""What is said of a data set that jobs still need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_project
from tests.webapp.datasets.test_data_sets import learning_from, ready
from webapp.datasets import services
from webapp.datasets.services import DataRefused

pytestmark = pytest.mark.django_db


def test_a_data_set_in_use_names_its_jobs(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path
    project = make_project()
    made = ready(project)
    learning_from(project, made, name="Roses or violets")
    with pytest.raises(DataRefused) as refused:
        services.delete(data_set=made)
    assert str(refused.value) == f"{made.name} is in use by 1 job: “Roses or violets”. Stop it first."
