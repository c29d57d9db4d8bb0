"""Launches the runs of tests, pair by pair, and ends tests. It reads all that it needs from the database.

It may be interrupted anywhere and called again: a pair and its two jobs are one transaction, and only a running test
gets pairs. Each run is a job below the test's budget, so the ledger refuses what the budget does not hold.
"""

from __future__ import annotations

import logging

from django.db import transaction

from webapp.accounts.models import Membership, Role
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.comparing.abtests.changes import ChangeRefused, changed
from webapp.comparing.abtests.models import ABTest, AbTestState, Pair
from webapp.comparing.abtests.results import PairResults, results_of, without_score
from webapp.comparing.abtests.services import end_test
from webapp.job_states import ACTIVE
from webapp.jobs.launch import launch_budget
from webapp.jobs.launch.preflight import training_obstacle
from webapp.jobs.lineage import repeated_fork_source
from webapp.jobs.seed_groups import with_seed
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec

log = logging.getLogger(__name__)
_LONGEST_NAME = 80


def advance_tests(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Advance every running test. One that cannot be advanced does not hold up the others."""
    for test_id in (
        ABTest.objects.filter(state=AbTestState.RUNNING).order_by("pk").values_list("pk", flat=True)
    ):
        try:
            advance(test_id, clock=clock)
        except Exception:
            log.exception("A/B test %s is advanced again at the next turn", test_id)


def advance(test_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Look at what has ended, and end the test or launch what its next look needs."""
    test = ABTest.objects.select_related("project", "job", "created_by", "budget", "group").get(pk=test_id)
    if test.state != AbTestState.RUNNING:
        return
    results = results_of(test)
    if end := _end_of(test, results):
        state, reason = end
        answer = results.answer
        difference = results.mean_difference(answer.pairs)
        end_test(test.pk, clock=clock, state=state, reason=reason, pairs=answer.pairs, difference=difference)
        return
    for number in range(len(results.pairs) + 1, results.next_look + 1):
        if not _launch(test, number, results, clock):
            return


def _end_of(test: ABTest, results: PairResults) -> tuple[AbTestState, str] | None:
    """Return how the test ends now, with the reason; None if it goes on."""
    if job := results.failed or without_score(results):
        return (
            AbTestState.FAILED,
            f"{job.name} ended without a result: {job.reason or job.get_observed_display()}",
        )
    if sign := results.answer.sign:
        return (AbTestState.BETTER if sign > 0 else AbTestState.WORSE), ""
    if len(results.differences) == test.most_pairs:
        return AbTestState.NO_DIFFERENCE, ""
    if results.out_of_money and not results.active:
        return (
            AbTestState.OUT_OF_MONEY,
            f"{results.out_of_money[0].name} had no money left for its next round.",
        )
    return None


def _launch(test: ABTest, number: int, results: PairResults, clock: Clock) -> bool:
    """Launch a pair; False if it does not fit now. Ends the test if it never will."""
    try:
        specs = _specs(test, number)
        for spec in specs:  # both take a second and are remembered: do it before rows are locked
            training_obstacle(spec.training)
            launch_budget.needs_of(test.project, spec)
        with transaction.atomic():
            if not ABTest.objects.select_for_update().filter(pk=test.pk, state=AbTestState.RUNNING).exists():
                return False
            if Pair.objects.filter(test=test, number=number).exists():
                return True
            assert test.job is not None
            source = repeated_fork_source(test.job)
            a, b = (
                submit_job(
                    project=test.project, user=test.created_by, spec=spec, made_from=source, clock=clock
                )
                for spec in specs
            )
            Pair.objects.create(test=test, number=number, a=a, b=b)
        return True
    except _CannotGoOn as error:
        end_test(test.pk, clock=clock, state=AbTestState.FAILED, reason=str(error))
    except SpecRefused as refusal:
        if not test.group.jobs.filter(observed__in=ACTIVE).exists():  # nothing that runs will make room
            no_money = any(problem.path == launch_budget.BUDGET for problem in refusal.problems)
            state = AbTestState.OUT_OF_MONEY if no_money else AbTestState.FAILED
            end_test(test.pk, clock=clock, state=state, reason=str(refusal), pairs=results.answer.pairs)
    return False


class _CannotGoOn(Exception):
    """The text says why no further run can be launched."""


def _specs(test: ABTest, number: int) -> tuple[JobSpec, JobSpec]:
    """Return the specs of a pair. Raises _CannotGoOn."""
    if test.job is None or (spec := test.job.readable_spec()) is None:
        raise _CannotGoOn("The job that the test began with is gone.")
    if test.project.archived_at is not None:
        raise _CannotGoOn("The project was archived. Start a new test once it is open again.")
    role = (
        Membership.objects.filter(project=test.project, user=test.created_by)
        .values_list("role", flat=True)
        .first()
    )
    if role is None or not Role(role).allows("editor"):
        raise _CannotGoOn(f"{test.created_by} may no longer launch jobs in this project. Start a new test.")
    try:
        other = changed(spec, test.change)
    except ChangeRefused as refusal:
        raise _CannotGoOn(str(refusal)) from None
    seed = test.first_seed + number - 1
    a, b = (
        with_seed(
            one.model_copy(update={"name": f"{test.name[:_LONGEST_NAME]}, {side}", "group": test.group.name}),
            seed,
        )
        for side, one in (("A", spec), ("B", other))
    )
    return a, b
