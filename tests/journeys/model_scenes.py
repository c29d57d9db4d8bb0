"""A job that learned a model from data, for looking at its pages: its training really ran."""

from __future__ import annotations

from typing import Any

from tests.factories import make_running_job
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import descent
from training.engine.checkpoints import FileCheckpointStore
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.spec import JobSpec


def trained_model_of(project: Any) -> Job:
    """Tumours by logistic regression, ten epochs by three functions."""
    spec = JobSpec.model_validate(
        {
            "name": "Tumours",
            "training": descent(data="breast_cancer", stop={"rounds": 10}).model_dump(mode="json"),
            "platform": {"kind": "simulated"},
            "budget_usd": "0.05",
        }
    )
    job, epoch = make_running_job(project=project, spec=spec)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, score=spec.training.score)
    store = FileCheckpointStore(checkpoint_folder(job.pk))
    for event in events_of(spec.training, InlinePlatform(), checkpoints=store)[:-1]:
        recorder.record(event)
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    return Job.objects.get(pk=job.pk)
