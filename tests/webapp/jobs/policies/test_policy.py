"""Taking policies away and having them filmed: who may, what they get, and what is said when it cannot be."""

import io
import re
import subprocess
import sys
import zipfile
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from tests.factories import (
    FixedClock,
    evaluated,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.members import add_member
from tests.training.specs import descent
from tests.webapp.jobs.policies.drawing import KILLED, answers, draw_by, draws
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.engine.messages import CheckpointSaved
from training.rl.environments.making import spaces_of
from training.rl.learner import LearnerState
from training.rl.policies.film import FilmFacts, still_of
from training.spec import TrainingSpec
from training.tasks.kinds import task_of
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies import film_process, films
from webapp.jobs.policies.film_process import FilmFailed, shoot
from webapp.jobs.running.recorder import Recorder

pytestmark = pytest.mark.django_db
PICTURE = b"RIFF....WEBP"


@pytest.fixture
def owner(client: Client) -> Any:
    user = make_user()
    client.force_login(user)
    return user


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner)


def written(folder: Path, spec: TrainingSpec, round_no: int, *, best: bool = False) -> CheckpointSaved:
    """A checkpoint of a policy that learned nothing, as a file; and the event that tells of it."""
    learner = LearnerState.initial(spec.network, spaces_of(spec.environment), round_no)
    progress = Progress(
        learner=learner.encode(), weights=b"", round_no=round_no, total_progress=256 * round_no
    )
    ref = FileCheckpointStore(folder).save(round_no, progress.encode(spec), best=best)
    return CheckpointSaved(
        round_no=round_no, name=ref.name, sha256=ref.sha256, byte_count=ref.byte_count, best=best
    )


def job_with_checkpoints(project: Any, rounds: int = 2, best: int | None = None) -> Job:
    """A running job with that many rounds, each with a checkpoint; one of them kept as the best."""
    job, epoch = make_running_job(project=project)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    folder = policies.checkpoint_path(job.pk, "").parent / job.pk
    for round_no in range(1, rounds + 1):
        recorder.record(round_finished(round_no))
        if round_no == best:
            recorder.record(written(folder, make_spec().training, round_no, best=True))
        recorder.record(evaluated(round_no, mean=100.0 + round_no))
        recorder.record(written(folder, make_spec().training, round_no))
    job.refresh_from_db()
    return job


def address(job: Job, rest: str = "") -> str:
    return f"/p/{job.project.slug}/jobs/{job.pk}/{rest}"


FACTS = asdict(FilmFacts(251, 400, 267, 10.04, 500, 492.0, True, 0, len(PICTURE)))


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_by(draws(PICTURE, FACTS), tmp_path, monkeypatch)


@pytest.fixture
def requested(hints: dict[str, list[int]]) -> list[int]:
    """The films that the worker was asked for."""
    return hints["jobs.film"]


# Taking it away


def test_the_tab_lists_what_is_kept_the_best_first(client: Client, project: Any) -> None:
    job = job_with_checkpoints(project, 3, best=2)
    rows = policies.list_checkpoints(job)
    assert [(row.round_no, row.best, row.steps, row.evaluated) for row in rows] == [
        (2, True, 512, 102.0),
        (3, False, 768, 103.0),
        (2, False, 512, 102.0),
        (1, False, 256, 101.0),
    ]
    page = client.get(address(job, "checkpoints/")).content.decode()
    assert "Checkpoints &amp; video" in page
    assert "Download the best" in page
    assert "Film it" in page


def test_a_job_without_checkpoints_says_so(client: Client, project: Any) -> None:
    job, _ = make_running_job(project=project)
    assert "No checkpoint yet" in client.get(address(job, "checkpoints/")).content.decode()
    assert client.get(address(job, "policy.zip")).status_code == 404


def test_the_zip_holds_model_card_and_script(client: Client, project: Any) -> None:
    job = job_with_checkpoints(project, 2)
    answer = client.get(address(job, "policy.zip"))
    assert answer["Content-Disposition"] == f'attachment; filename="starling-{job.pk}-round-2.zip"'
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert sorted(archive.namelist()) == ["README.md", "play.py", "policy.onnx"]
    card = archive.read("README.md").decode()
    assert card.startswith(f"# {job.name}\n")
    assert "102.0 ± 0.0" in card
    assert re.search(r"\$0\.00 for .* 2 rounds", card)
    assert "emulated" not in card
    Job.objects.filter(pk=job.pk).update(emulated=True)
    archive = zipfile.ZipFile(io.BytesIO(client.get(address(job, "policy.zip")).content))
    assert "2 rounds, **emulated**" in archive.read("README.md").decode()
    older = client.get(address(job, "policy.zip"), {"checkpoint": policies.list_checkpoints(job)[1].name})
    assert "round-1.zip" in older["Content-Disposition"]


def test_a_checkpoint_that_is_gone_or_damaged_is_explained(client: Client, project: Any) -> None:
    job = job_with_checkpoints(project, 1)
    path = policies.checkpoint_path(job.pk, policies.list_checkpoints(job)[0].name)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    page = client.get(address(job, "policy.zip"), follow=True).content.decode()
    assert "exported: checkpoint" in page
    path.unlink()
    page = client.get(address(job, "policy.zip"), follow=True).content.decode()
    assert "No such file" in page


def test_names_that_people_make_up_are_not_looked_for(client: Client, project: Any) -> None:
    job = job_with_checkpoints(project, 1)
    for name in ("../../secret_key", "round-00000009.checkpoint", "/etc/passwd"):
        assert client.get(address(job, "policy.zip"), {"checkpoint": name}).status_code == 404


def test_who_may_do_what(client: Client, project: Any, requested: list[int]) -> None:
    job = job_with_checkpoints(project, 1)
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    client.force_login(viewer)
    assert client.get(address(job, "policy.zip")).status_code == 200
    assert "Film it" not in client.get(address(job, "checkpoints/")).content.decode()
    assert client.post(address(job, "films/")).status_code == 403
    client.force_login(make_user())
    assert client.get(address(job, "policy")).status_code == 404
    assert client.get(address(job, "policy.zip")).status_code == 404
    assert client.post(address(job, "films/")).status_code == 404
    film = Film.objects.create(
        job=job,
        checkpoint="x",
        sha256="y",
        round_no=1,
        since=job.since,
        requested_by=viewer,
        state=FilmState.READY,
        file="z.webp",
    )
    assert client.get(address(job, f"films/{film.pk}-film.webp")).status_code == 404
    assert not requested


@pytest.mark.slow
def test_the_web_process_exports_without_torch(project: Any) -> None:
    program = (
        "import django, sys; django.setup(); import webapp.urls;"
        "from training.rl.policies import loader, model_card;"
        "print('torch' in sys.modules)"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "STARLING_DATA": str(settings.STARLING_DATA),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "False", done.stderr


# Films: rows and pages


def test_a_film_is_queued_made_and_shown(
    client: Client, project: Any, requested: list[int], drawn: None, django_capture_on_commit_callbacks: Any
) -> None:
    job = job_with_checkpoints(project, 1)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(address(job, "films/"), {"checkpoint": policies.list_checkpoints(job)[0].name})
    assert answer["Location"] == f"{address(job)}checkpoints/"
    film = Film.objects.get()
    assert requested == [film.pk]
    fragment = client.get(address(job, "policy")).content.decode()
    assert "Queued" in fragment
    assert 'data-policy-pending="yes"' in fragment
    films.FILMING.run(film.pk)
    film.refresh_from_db()
    assert film.state == FilmState.READY
    fragment = client.get(address(job, "policy")).content.decode()
    assert "Return 492.0 in 500 steps" in fragment
    assert 'data-policy-pending="no"' in fragment
    for part in ("film", "still"):
        answer = client.get(address(job, f"films/{film.pk}-{part}.webp"))
        assert b"".join(answer.streaming_content) == PICTURE  # type: ignore[attr-defined]
        assert answer["Content-Type"] == "image/webp"


def test_a_film_that_fails_says_why_and_can_be_tried_again(
    client: Client, project: Any, requested: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "MuJoCo cannot draw without a screen on this machine."
    draw_by(answers({"error": why}), tmp_path, monkeypatch)
    job = job_with_checkpoints(project, 1)
    chosen = policies.list_checkpoints(job)[0]
    film = films.ask_for_film(job=job, chosen=chosen, user=job.created_by)
    films.FILMING.run(film.pk)
    page = client.get(address(job, "checkpoints/")).content.decode()
    assert "round 1: MuJoCo cannot" in page
    assert "Film again" in page
    film = films.ask_for_film(job=job, chosen=chosen, user=job.created_by)
    assert (film.state, film.reason) == (FilmState.QUEUED, "")
    draw_by(draws(PICTURE, FACTS), tmp_path, monkeypatch)
    films.FILMING.run(film.pk)
    again = films.ask_for_film(job=job, chosen=chosen, user=job.created_by)
    assert again.state == FilmState.READY  # one that is there is not made twice


def test_lost_messages_and_dead_workers_leave_no_film_waiting_for_ever(
    project: Any, requested: list[int], drawn: None
) -> None:
    job = job_with_checkpoints(project, 1)
    clock = FixedClock()
    film = films.ask_for_film(
        job=job, chosen=policies.list_checkpoints(job)[0], user=job.created_by, clock=clock
    )
    films.FILMING.recover(clock=clock)
    assert requested == []
    clock.forward(5)
    films.FILMING.recover(clock=clock)
    assert requested == [film.pk]
    Film.objects.filter(pk=film.pk).update(state=FilmState.FILMING, since=clock.now())
    films.FILMING.run(film.pk, clock=clock)  # a message that comes twice
    assert Film.objects.get().state == FilmState.FILMING
    clock.moment += films.FILMING.silent_for + timedelta(seconds=1)
    films.FILMING.recover(clock=clock)
    film.refresh_from_db()
    assert (film.state, film.reason) == (FilmState.FAILED, films.FILMING.interrupted)


# Films: drawing


def drawn_film(tmp_path: Path, environment: str) -> tuple[Path, dict[str, Any] | str]:
    spec = TrainingSpec.model_validate({"environment": {"id": environment}})
    saved = written(tmp_path, spec, 1)
    file = tmp_path / "film.webp"
    try:
        return file, shoot(tmp_path / saved.name, file)
    except FilmFailed as error:
        return file, str(error)


def test_cart_pole_on_film(tmp_path: Path) -> None:
    from PIL import Image

    file, facts = drawn_film(tmp_path, "CartPole-v1")
    assert isinstance(facts, dict), facts
    with Image.open(file) as film:
        assert film.n_frames == facts["frames"] > 1  # type: ignore[attr-defined]
        assert film.size == (facts["width"], facts["height"]) == (400, 267)
    with Image.open(still_of(file)) as still:
        assert getattr(still, "n_frames", 1) == 1
    assert facts["byte_count"] == file.stat().st_size < 3_000_000
    assert facts["ended"]
    assert facts["episode_return"] == facts["steps"]


@pytest.mark.slow
def test_hopper_on_film_or_the_reason_why_not(tmp_path: Path) -> None:
    file, facts = drawn_film(tmp_path, "Hopper-v5")
    if isinstance(facts, str):
        assert "MuJoCo cannot draw" in facts
        assert not file.exists()
    else:
        assert facts["frames"] > 1
        assert file.stat().st_size < 3_000_000


def test_what_goes_wrong_while_drawing_becomes_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FilmFailed, match=r"^Checkpoint gone.checkpoint cannot be read"):
        shoot(tmp_path / "gone.checkpoint", tmp_path / "film.webp")
    saved = written(tmp_path, make_spec().training, 1)
    with pytest.raises(FilmFailed, match=r"\b0 s\b"):
        shoot(tmp_path / saved.name, tmp_path / "film.webp", within_s=0.05)
    monkeypatch.setattr(film_process, "_DRAWING", ("SDL_VIDEODRIVER=nonsense",))
    with pytest.raises(FilmFailed, match=r"nonsense not available"):
        shoot(tmp_path / saved.name, tmp_path / "film.webp")
    draw_by(KILLED, tmp_path, monkeypatch)
    with pytest.raises(FilmFailed, match="ended by SIGSEGV while it drew"):
        shoot(tmp_path / saved.name, tmp_path / "film.webp")


# manage.py export


def test_the_command_writes_a_folder_of_a_file_or_a_job(project: Any, tmp_path: Path) -> None:
    saved = written(tmp_path, make_spec().training, 1)
    call_command("export", str(tmp_path / saved.name), "--to", str(tmp_path / "a"), "--episodes", "3")
    assert "over 3 whole episodes" in (tmp_path / "a" / "README.md").read_text()
    job = job_with_checkpoints(project, 2)
    call_command("export", job.pk, "--to", str(tmp_path / "b"), "--video")
    names = {path.name for path in (tmp_path / "b").iterdir()}
    assert names == {"policy.onnx", "README.md", "play.py", "film.webp", "film-still.webp"}


def test_the_command_refuses_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in ("job_nosuchjob1", str(tmp_path / "none.checkpoint")):
        with pytest.raises(SystemExit) as ended:
            call_command("export", source, "--to", str(tmp_path))
        assert ended.value.code == 2
        assert repr(source) in capsys.readouterr().err


def test_a_file_of_a_supervised_run_is_exported_as_a_model(tmp_path: Path, capsys: Any) -> None:
    spec = descent()
    ref = FileCheckpointStore(tmp_path).save(1, task_of(spec).begin().encode(spec))
    call_command("export", str(tmp_path / ref.name), "--to", str(tmp_path / "model"))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "README.md",
        "model.onnx",
        "predict.py",
    ]
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("# Digits, epoch 0\n")
    assert "$0.00 up to this" in card
    assert "is not known" in card
    for data, options, sentence in (
        (None, ["--episodes", "3"], "only a policy plays episodes; this checkpoint is of a model."),
        ("0" * 64, [], "The data set 000000000000 is not here"),
    ):
        if data is not None:
            gone = spec.model_copy(update={"data": data})
            ref = FileCheckpointStore(tmp_path).save(2, task_of(spec).begin().encode(gone))
        with pytest.raises(SystemExit, match="2"):
            call_command("export", str(tmp_path / ref.name), "--to", str(tmp_path / "none"), *options)
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
