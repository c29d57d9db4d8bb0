"""A site with jobs in a fresh data folder: Valkey, one web process, people with sessions, rounds being recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management import call_command
from django.test import Client

from rig.servers import answers, server_process, wait_until
from training.engine.messages import Started
from webapp.accounts import services as accounts
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.form.presets import presets
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import begin_run
from webapp.jobs.services import submit_job
from webapp.processes.embedded_valkey import embedded_valkey, free_port
from webapp.web_server import web_server


class Watched(NamedTuple):
    job: Any
    recorder: Recorder


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """The site's address and the web process's number. Doorbells ring here and are heard there."""
    call_command("migrate", verbosity=0)
    folder = Path(settings.STARLING_DATA)
    valkey = embedded_valkey(folder / "valkey", port=free_port(), password="")
    with ExitStack() as stack:
        stack.enter_context(server_process(valkey.command))
        wait_until(valkey.answers, within_s=20, what="Valkey answers")
        settings.REDIS_URL = valkey.url
        call_command("collectstatic", interactive=False, verbosity=0, skip_checks=True)
        port = free_port()
        command = web_server(port=port)
        environment = {**os.environ, "REDIS_URL": valkey.url, "SECRET_KEY": settings.SECRET_KEY}
        process = stack.enter_context(
            server_process(command, environment=environment, log=folder / "web.log")
        )
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/livez"), within_s=60, what="the site answers")
        yield url, process.pid


def running_jobs(count: int) -> tuple[Any, list[Watched]]:
    """A project with running jobs that no process runs: their events are made up."""
    owner = accounts.create_person("bench@example.org", "correct horse battery")
    project = accounts.ensure_personal_project(owner)
    jobs = []
    for _ in range(count):
        job = submit_job(project=project, user=owner, spec=presets()["hopper-simulated"].spec)
        epoch = take_lease(job_id=job.pk, owner=f"bench-{job.pk}", clock=SYSTEM_CLOCK)
        assert epoch is not None
        begin_run(job_id=job.pk, epoch=epoch, clock=SYSTEM_CLOCK)
        recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
        recorder.record(Started())
        jobs.append(Watched(job, recorder))
    return project, jobs


def session_of(person: Any) -> str:
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def resident_kb(pid: int) -> int:
    """What the process holds in memory now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
