"""The tabs of a job's page, without a script: each an address, with what it is about on it."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.factories import call_failed, evaluated, make_running_job, make_user, round_finished
from training.engine.ports import Reservation, Settlement
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.job_page import TABS
from webapp.jobs.models import Job
from webapp.jobs.round_calls import round_calls
from webapp.jobs.running import run_log
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Any:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for event in (round_finished(1), evaluated(1), call_failed()):
        recorder.record(event)
    recorder.flush()
    job.refresh_from_db()
    return job


@pytest.fixture
def get(client: Client, job: Any) -> Callable[[str], Any]:
    client.force_login(job.created_by)
    return lambda path: client.get(f"/p/{job.project.slug}/jobs/{job.pk}/{path}")


@pytest.mark.parametrize("name", [name for name, _ in TABS])
def test_each_tab_has_the_head_and_says_where_one_is(get: Callable[[str], Any], job: Any, name: str) -> None:
    page = get("" if name == "detail" else f"{name}/").content.decode()
    assert f"<h1>{job.name}</h1>" in page
    assert 'data-live="money-sentence"' in page
    word = "Checkpoints &amp; video" if name == "checkpoints" else job.declaration.say(dict(TABS)[name])
    assert f'aria-current="page">{word}</a>' in page


def test_a_spec_with_long_values_is_shown_short_and_copied_whole(get: Callable[[str], Any], job: Any) -> None:
    page = get("spec/").content.decode()
    assert page.count('data-copy-text="spec"') == 1
    assert "The whole document" not in page
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "weights": "A" * 36_000})
    page = get("spec/").content.decode()
    assert "… (36,000 letters in all)" in page
    assert page.index("The whole document") < page.index('data-copy-text="spec"') < page.index("A" * 36_000)
    assert page.count("A" * 100) == 360, "the long value is there once"


def test_other_people_s_jobs_are_not_there(client: Client, job: Any) -> None:
    client.force_login(make_user())
    for path in ("", "actors/", "logs/", "logs/lines", "logs/log.jsonl", "series"):
        assert client.get(f"/p/{job.project.slug}/jobs/{job.pk}/{path}").status_code == 404


def test_events_in_words_with_or_without_rounds(get: Callable[[str], Any]) -> None:
    page = get("events/").content.decode()
    assert "Evaluated after round 1: 100.0 ± 0.0 over 1 episode." in page
    assert "1 failed: It fell" in page
    assert "Round 1: return" not in page
    assert "Round 1: return 20.0, 8 actors, " in get("events/?rounds=1").content.decode()


def test_series_of_some_rounds(get: Callable[[str], Any], job: Any) -> None:
    recorder = Recorder(job.pk, job.lease_epoch, keep_checkpoints=3)
    for number in range(2, 6):
        recorder.record(round_finished(number))
    series = get("series?from=2&to=4").json()
    assert series["columns"]["round"] == [2, 3, 4]
    assert series["rounds"] == 5
    assert get("series?from=x&to=-1").status_code == 200


def _call(name: str, dollars: float = 0.01) -> Reservation:
    return Reservation(name, "rollout", 3, round(dollars * 10**12))


def test_calls_of_the_newest_round_the_urgent_ones_first(job: Any) -> None:
    ledger = DatabaseLedger(job.account.pk, job.lease_epoch)
    names = [f"{job.pk}-e1-r3-s{slot}-{slot}-n{slot}-a1" for slot in range(3)]
    ledger.reserve([_call(name) for name in names])
    usage = {"env_steps": 256, "cold_start": True, "startup_s": 0.8, "run_s": 2.0}
    ledger.settle([Settlement(names[0], 4 * 10**9, "metered", (), usage)])
    ledger.settle([Settlement(names[1], 2 * 10**9, "metered", (), {})])
    failed = call_failed(names[1]).model_copy(update={"round_no": 3})
    recorder = Recorder(job.pk, job.lease_epoch, keep_checkpoints=3)
    recorder.record(failed)
    recorder.flush()
    found = round_calls(Job.objects.get(pk=job.pk), None, SYSTEM_CLOCK.now())
    assert found is not None
    assert [(row.slot, row.state) for row in found.rows] == [(1, "failed"), (2, "open"), (0, "done")]
    assert found.rows[0].error == "It fell over."
    done = found.rows[2]
    assert (done.cold, done.startup_s, done.steps, done.cost) == (True, 0.8, 256, 4 * 10**9)
    assert done.took_s == pytest.approx(2.8)
    assert (found.counts, found.cold) == ({"open": 1, "done": 1, "failed": 1}, 1)


def test_a_job_without_calls_says_so(get: Callable[[str], Any]) -> None:
    assert "data-no-calls" in get("actors/").content.decode()


def _logged(job: Any) -> None:
    with run_log.RunLog(job.pk) as log:
        log.tell(round_finished(7))
        log.tell(call_failed())
        try:
            raise ValueError("<b>out of luck</b>")
        except ValueError:
            logging.getLogger("webapp.somewhere").exception("the update failed")
    logging.getLogger("webapp.somewhere").error("after the run")


def test_the_log_holds_what_was_told_and_what_went_wrong(job: Any) -> None:
    _logged(job)
    lines = run_log.read(job.pk).lines
    assert [line.level for line in lines] == ["info", "warning", "error"]
    assert lines[0].text.startswith("Round 7: return")
    assert "Traceback" in lines[2].text
    assert [line.level for line in run_log.read(job.pk, level="warning").lines] == ["warning", "error"]
    assert [line.level for line in run_log.read(job.pk, wanted="OUT of luck").lines] == ["error"]


def test_following_the_log_gets_what_is_new_and_no_half_line(job: Any) -> None:
    _logged(job)
    first = run_log.read(job.pk)
    assert run_log.read(job.pk, after=first.position).lines == []
    line = json.dumps({"at": "2026-01-01T00:00:00+00:00", "level": "info", "source": "x", "text": "new"})
    with run_log.log_file(job.pk).open("a") as file:
        file.write(f"{line}\n{line[:20]}")
    later = run_log.read(job.pk, after=first.position)
    assert [one.text for one in later.lines] == ["new"]
    assert later.position == first.position + len(line) + 1


def test_a_log_that_was_cut_is_read_from_its_beginning(job: Any) -> None:
    _logged(job)
    assert len(run_log.read(job.pk, after=10**9).lines) == 3


def test_the_log_s_page_shows_text_as_text(get: Callable[[str], Any], job: Any) -> None:
    _logged(job)
    page = get("logs/?level=error").content.decode()
    assert "&lt;b&gt;out of luck" in page
    assert "Round 7" not in page
    lines = get("logs/lines?after=0&level=error")
    assert int(lines["Starling-Position"]) > 0
    assert b"out of luck" in b"".join(get("logs/log.jsonl").streaming_content)


def test_ids_that_are_paths_are_no_files() -> None:
    with pytest.raises(ValueError, match="no job's id"):
        run_log.log_file("../secret_key")
