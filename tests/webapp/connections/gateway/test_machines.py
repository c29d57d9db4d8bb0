"""Machines of the user's own: a job whose calls they fetch from the site, and what its page says of them."""

import html
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from rig.servers import wait_until
from tests.cloud import pullers
from tests.factories import FixedClock, make_job, make_running_job, make_spec, make_user
from tests.figures import figures_in
from tests.webapp.bookkeeping import assert_whole
from training.engine.ports import Offer
from webapp.connections.gateway import services
from webapp.connections.gateway.coordinator import open_mailbox
from webapp.connections.gateway.models import Box, BoxToken, CallState, HeldWeights, PulledCall, SeenPuller
from webapp.connections.gateway.store import DatabaseStore, WaitingPuller
from webapp.jobs import machines
from webapp.jobs.models import Job
from webapp.jobs.running.runner import run_job

_SMALL: dict[str, Any] = {
    "training__scaling__actors": 2,
    "training__rollout__steps_per_call": 16,
    "training__stop": {"rounds": 4, "env_steps": None},
    "training__checkpoints": {"every_rounds": 2},
    "training__evaluation": {"every_rounds": 4, "episodes": 1},
}


def _hosts(**options: Any) -> Any:
    """Of two machines; options that begin with `training__` are the training's."""
    training = {name: options.pop(name) for name in list(options) if name.startswith("training__")}
    return make_spec(platform={"kind": "hosts", "machines": 2, **options}, **{**_SMALL, **training})


def _run(job: Job) -> Job:
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    job.refresh_from_db()
    return job


@pytest.mark.stack
@pytest.mark.django_db(transaction=True)
def test_a_job_is_sampled_by_a_machine_that_calls_and_learns_what_it_would_have_learned_here(
    live_site: str, settings: Any, tmp_path: Path
) -> None:
    settings.STARLING_BASE_URL = live_site
    job = make_job(spec=_hosts(machine_usd_per_hour="3.6"))
    # It may come before the job's process does.
    log = tmp_path / "puller.log"
    puller = pullers.start(live_site, services.new_token(job_id=job.pk), log=log)
    try:
        _run(job)
        assert (job.observed, job.round_no, job.summary["env_steps"]) == ("succeeded", 4, 128)
        assert puller.wait(timeout=60.0) == 0, log.read_text()
    finally:
        pullers.stop([puller])
    assert_whole(job)
    rents = job.account.charges.filter(kind="rent", state="settled")
    assert rents.exists()
    assert sum(rents.values_list("settled_picodollars", flat=True)) == job.account.spent_picodollars
    assert not PulledCall.objects.exists()
    assert services.tidy() == 1
    assert Box.objects.get().closed
    for table in (HeldWeights, SeenPuller):
        assert not table.objects.exists()
    assert not BoxToken.objects.exists()
    here = _run(make_job(spec=make_spec(platform={"kind": "local", "workers": 1}, **_SMALL)))
    assert _checkpoints(job)[0].keys() == _checkpoints(here)[0].keys() == {2, 4}
    assert _checkpoints(job)[1] == _checkpoints(here)[1]


def _checkpoints(job: Job) -> tuple[dict[int, str], bytes]:
    """Their hashes by round, and the learner in the last."""
    from training.engine.checkpoints import Progress
    from webapp.jobs.running.checkpoint_files import CheckpointFiles, checkpoint_folder

    rows = {row.round_no: row for row in job.checkpoints.all()}
    spec = job.parsed_spec().training
    data = CheckpointFiles(checkpoint_folder(job.pk), spec.checkpoints.keep).load(rows[max(rows)].name)
    return {no: row.sha256 for no, row in rows.items()}, Progress.decode(data, spec).learner


@pytest.mark.slow
@pytest.mark.stack
@pytest.mark.django_db(transaction=True)
def test_a_killed_machine_s_calls_go_to_another_of_the_site(
    live_site: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pullers over the database; the first is killed with a call in hand, one that takes long enough to be seen."""
    monkeypatch.setattr("cloud.platforms.hosts._LEASE_S", 2.0)
    settings.STARLING_BASE_URL = live_site
    job = make_job(spec=_hosts(training__rollout__steps_per_call=4096))
    token = services.new_token(job_id=job.pk)
    pulling = [pullers.start(live_site, token)]

    def kill_when_busy() -> None:
        from django.db import connection

        try:
            leased = PulledCall.objects.filter(state=CallState.LEASED)
            wait_until(leased.exists, within_s=120.0, what="it has a call")
            pulling[0].kill()
        finally:
            pulling.append(pullers.start(live_site, token))
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        killed = threads.submit(kill_when_busy)
        try:
            _run(job)
        finally:
            # Whatever went wrong, no machine is left behind.
            wait([killed])
            pullers.stop(pulling)
    killed.result()
    assert (job.observed, job.round_no) == ("succeeded", 4)
    assert_whole(job)


@pytest.mark.django_db
def test_the_command_holds_a_token_that_is_shown_once(client: Client, settings: Any) -> None:
    settings.STARLING_BASE_URL = "https://starling.example.org"
    job, _ = make_running_job(spec=_hosts(processes=4))
    client.force_login(job.created_by)
    address = f"/p/{job.project.slug}/jobs/{job.pk}"
    answer = client.post(f"{address}/machines/join")
    assert "no-store" in answer["Cache-Control"]
    shown = html.unescape(answer.content.decode())
    found = re.search(
        r"STARLING_RUN_TOKEN=(\S+) \\\n  python -m cloud\.actor\.puller --gateway (\S+) (.*?)<", shown
    )
    assert found is not None
    assert found[2] == "https://starling.example.org"
    assert found[3] == "--processes 4"
    assert DatabaseStore().admitted(found[1]) == job.pk
    row = BoxToken.objects.get()
    assert row.made_by == job.created_by
    secret = found[1].partition(".")[2]
    assert secret not in client.get(f"{address}/").content.decode()
    assert secret not in str(list(BoxToken.objects.values()))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("observed", "stays"), [("recovering", True), ("paused", False), ("failed", False), ("succeeded", False)]
)
def test_machines_wait_for_a_job_that_changes_its_process_and_for_no_other(
    observed: str, stays: bool
) -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock, spec=_hosts())
    mailbox = open_mailbox(job_id=job.pk, epoch=epoch, clock=clock).mailbox
    mailbox.stay(5.0)
    mailbox.offer([Offer("c", b"", 2e9, 10.0, 10.0, 10)])
    mailbox.close()
    Job.objects.filter(pk=job.pk).update(observed=observed)
    found = DatabaseStore(clock).hand_out(job.pk, [WaitingPuller("p", "u")])
    assert found.open == stays
    assert found.work == {}
    if stays:
        assert found.stay_until_unix_s - found.now_unix_s > 60


@pytest.mark.django_db
def test_a_job_that_is_over_shows_no_command(client: Client) -> None:
    job, _ = make_running_job(spec=_hosts())
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    client.force_login(job.created_by)
    answer = client.post(f"/p/{job.project.slug}/jobs/{job.pk}/machines/join")
    assert "no machines any" in answer.content.decode()
    assert not BoxToken.objects.exists()


@pytest.mark.django_db
def test_viewers_see_the_machines_but_no_command(client: Client) -> None:
    job, _ = make_running_job(spec=_hosts())
    viewer = make_user()
    job.project.memberships.create(user=viewer, role="viewer")
    client.force_login(viewer)
    address = f"/p/{job.project.slug}/jobs/{job.pk}"
    page = client.get(f"{address}/").content.decode()
    assert "machines: 0 of 2 " in page
    assert "Show the command" not in page
    assert client.post(f"{address}/machines/join").status_code == 403


@pytest.mark.django_db
def test_the_page_counts_machines_as_they_come_and_go(client: Client) -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock, spec=_hosts())
    services.open_box(job_id=job.pk, epoch=epoch, clock=clock)
    store = DatabaseStore(clock)

    def said() -> list[str]:
        return figures_in(str(machines.panel(job, clock)["machines_words"]))

    assert said() == ["0", "2"]
    store.hand_out(job.pk, [WaitingPuller("a-1", "a"), WaitingPuller("a-2", "a")])
    assert said() == ["1", "2", "2", "0"]
    store.hand_out(job.pk, [WaitingPuller("b-1", "b")])
    assert said() == ["2", "3", "0"]
    clock.forward(60.0)
    assert said() == ["2", "2", "60"]


@pytest.mark.django_db
def test_a_site_without_https_takes_no_job_for_machines_elsewhere(settings: Any) -> None:
    settings.STARLING_BASE_URL = "http://starling.example.org"
    with pytest.raises(ValueError, match=r"\(platform.kind\).*http://starling.example.org"):
        make_job(spec=_hosts())
    assert not Job.objects.exists()
    settings.STARLING_BASE_URL = "https://starling.example.org"
    assert make_job(spec=_hosts()).observed == "queued"


@pytest.mark.django_db
def test_the_package_for_a_machine_has_all_it_needs(client: Client) -> None:
    import io
    import zipfile

    job, _ = make_running_job(spec=_hosts())
    client.force_login(job.created_by)
    answer = client.get(f"/p/{job.project.slug}/jobs/{job.pk}/machines/actor.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = set(archive.namelist())
        needs = archive.read("requirements.txt").decode().split()
    assert {"cloud/actor/puller.py", "cloud/actor/wire.py", "training/functions/rollout.py"} <= names
    assert not any(
        name.startswith(("webapp/", "cloud/platforms/gateway/", "cloud/platforms/aws")) for name in names
    )
    assert all("==" in need for need in needs)
