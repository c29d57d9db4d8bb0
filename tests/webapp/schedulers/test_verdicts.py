"""Whether a scheduler is worth using is decided by real episodes beside fixed numbers, not by its training's end."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from tests.factories import make_project
from tests.figures import figures_in
from tests.webapp.scheduler_rows import make_rows, make_version
from webapp.schedulers import persist
from webapp.schedulers.models import Episode, EpisodeKind, SchedulerTraining, Version
from webapp.schedulers.text import status_of, worth_of
from webapp.schedulers.verdicts import MAY_TURN, Worth, verdict_of

pytestmark = pytest.mark.django_db


def episode(training: SchedulerTraining, kind: EpisodeKind, number: int, **figures: object) -> None:
    row = {"rounds": 4, "platform_s": 10.0, "wall_s": 1.0, "cost_picodollars": 10**9, "reached": True}
    row |= {"actors": [number] * 4, "best_return": 475.0, "score": -1.0} | figures
    Episode.objects.create(
        training=training, kind=kind, number=number, at=datetime(2026, 1, 1, tzinfo=UTC), **row
    )


def judged(training: SchedulerTraining) -> Version:
    """Store the facts again, as its end does."""
    version: Version = training.version
    version.facts = persist.facts(training)
    version.save()
    SchedulerTraining.objects.filter(pk=training.pk).update(state="done")
    training.refresh_from_db()
    return version


def test_one_that_never_reached_its_target_and_is_dearer_than_a_fixed_number_is_not_called_trained() -> None:
    training = make_rows(make_project(), scheduling__objective="cost")
    episode(training, EpisodeKind.GRID, 1, cost_picodollars=2 * 10**9)
    episode(training, EpisodeKind.GRID, 2, cost_picodollars=3 * 10**9)
    for number in (1, 2):
        episode(training, EpisodeKind.REAL, number, reached=False, cost_picodollars=9 * 10**9)
    version = judged(training)
    verdict = verdict_of(version.facts, training.parsed_spec)
    assert verdict.worth == Worth.DO_NOT_USE
    assert figures_in(verdict.sentence) == ["475.0", "0", "2", "1", "$0.00200"]
    assert verdict.sentence.endswith(MAY_TURN)
    status = status_of(training)
    assert (status.word, status.tone) == ("Do not use", "warning")


@pytest.mark.parametrize(
    ("objective", "own", "fixed", "worth"),
    [
        ("cost", [(True, 9, 3), (True, 9, 3)], [(True, 5, 4)], Worth.USEFUL),
        ("time", [(True, 9, 3), (True, 9, 3)], [(True, 5, 4)], Worth.DO_NOT_USE),
        # Money for the one that missed the target is spent as well.
        ("cost", [(True, 9, 3), (False, 9, 3)], [(True, 5, 4)], Worth.DO_NOT_USE),
        ("cost", [(True, 9, 4)], [(True, 5, 4)], Worth.DO_NOT_USE),
        ("cost", [(True, 9, 9)], [(False, 5, 4)], Worth.USEFUL),
        ("cost", [(False, 9, 1)], [(False, 5, 4)], Worth.DO_NOT_USE),
        ("cost", [(True, 9, 3)], [], Worth.UNCONFIRMED),
        ("cost", [(False, 9, 3)], [], Worth.DO_NOT_USE),
        ("cost", [], [(True, 5, 4)], Worth.UNCONFIRMED),
    ],
)
def test_what_it_took_for_each_time_at_the_target_decides(
    objective: str, own: list[tuple[bool, int, int]], fixed: list[tuple[bool, int, int]], worth: Worth
) -> None:
    training = make_rows(make_project(), scheduling__objective=objective)
    for kind, trials in ((EpisodeKind.REAL, own), (EpisodeKind.GRID, fixed)):
        for number, (reached, seconds, dollars) in enumerate(trials, start=1):
            figures = {"reached": reached, "platform_s": seconds, "cost_picodollars": dollars * 10**9}
            episode(training, kind, number, **figures)
    version = judged(training)
    assert verdict_of(version.facts, training.parsed_spec).worth == worth


@pytest.mark.parametrize(("count", "few"), [(4, True), (5, False)])
def test_a_verdict_by_few_episodes_says_that_more_may_turn_it(count: int, few: bool) -> None:
    training = make_rows(make_project(), scheduling__objective="cost")
    episode(training, EpisodeKind.GRID, 1, cost_picodollars=2 * 10**9)
    for number in range(count):
        episode(training, EpisodeKind.REAL, number)
    verdict = verdict_of(judged(training).facts, training.parsed_spec)
    assert verdict.worth == Worth.USEFUL
    assert verdict.sentence.endswith(MAY_TURN) == few


def test_fixed_numbers_that_another_training_of_the_project_recorded_count_if_the_target_is_the_same() -> (
    None
):
    project = make_project()
    other, same = make_rows(project, name="A", target=100.0), make_rows(project, name="B", target=200.0)
    training = make_rows(project, name="C", target=200.0)
    episode(other, EpisodeKind.GRID, 1, cost_picodollars=1)
    episode(same, EpisodeKind.GRID, 2, cost_picodollars=2, platform_s=1.0)
    episode(training, EpisodeKind.REAL, 1)
    assert judged(training).facts["fixed"]["actors"] == 2
    episode(make_rows(make_project(), name="D", target=200.0), EpisodeKind.GRID, 1, platform_s=0.1)
    assert judged(training).facts["fixed"]["actors"] == 2


def test_a_version_from_before_there_were_verdicts_is_judged_by_what_it_kept() -> None:
    training = make_rows(make_project())
    old = {key: value for key, value in training.version.facts.items() if key not in ("own", "fixed")}
    spec = training.parsed_spec
    assert verdict_of({**old, "episodes": 2, "reached": 0}, spec).worth == Worth.DO_NOT_USE
    assert verdict_of({**old, "episodes": 2, "reached": 2}, spec).worth == Worth.UNCONFIRMED
    assert verdict_of(old, spec).worth == Worth.UNCONFIRMED


def test_list_page_training_and_the_job_form_say_it(client: Client) -> None:
    version = make_version()
    training = version.training
    for number in (1, 2):
        episode(training, EpisodeKind.REAL, number, reached=False)
    judged(training)
    version.refresh_from_db()
    sentence = worth_of(version).sentence
    client.force_login(training.requested_by)
    slug = training.project.slug
    for address in (
        f"/p/{slug}/schedulers/",
        f"/p/{slug}/schedulers/{version.scheduler_id}/",
        f"/p/{slug}/schedulers/trainings/{training.pk}/",
        f"/p/{slug}/jobs/new/?preset=cartpole&scheduler={version.key}",
    ):
        body = client.get(address).content.decode()
        assert "Do not use" in body, address
        assert sentence in body, address
        assert ">Trained<" not in body, address
