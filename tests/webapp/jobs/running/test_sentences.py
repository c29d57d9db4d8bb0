"""What is said of a job that waits or may not go on."""

from __future__ import annotations

from typing import Any

from webapp.jobs.running.budget_throttle import no_beginning
from webapp.jobs.running.job_slots import core_sentence
from webapp.money.queries import Limit

USD = 10**12


def test_a_job_that_waits_for_a_core(settings: Any) -> None:
    settings.STARLING_MAX_LOCAL_JOBS = 2
    assert core_sentence(2) == "Waits for a free core: 2 of 2 are in use."
    assert core_sentence(2, ahead=1) == (
        "Waits for a free core: 2 of 2 are in use, and 1 job is ahead of this one."
    )


def test_a_run_that_its_budget_cannot_begin() -> None:
    limit = Limit("the budget “All”", "drain", 0.0, 39 * USD)
    assert no_beginning([limit], 40 * USD) == (
        "the next round may need $40.00 and $39.00 of the budget “All” is left; so none was begun"
    )
