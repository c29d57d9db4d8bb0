"""What changed since release 0.1.0: only known codes say why a job is in its state, and one says that recorded checkpoints
cannot be read; indexes for what runs, what changed last and what was launched on which cloud; what every kind of training
has is not named by reinforcement learning; films that no user requested, and how often a film was tried; a round's report
is stored once, in its event.
"""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_REASONS = [
    ("", "Nothing special"),
    ("target", "Target reached"),
    ("rounds", "Rounds done"),
    ("steps", "Steps done"),
    ("minutes", "Time over"),
    ("no_progress", "No progress"),
    ("budget", "Budget"),
    ("paused", "Paused on request"),
    ("cancelled", "Stopped on request"),
    ("failing", "Calls or updates failed"),
    ("handover", "Worker stopped"),
    ("lost", "Lease lost"),
    ("crashed", "Process died"),
    ("error", "Error in the run"),
    ("disk", "Checkpoint not written"),
    ("unreadable", "Checkpoint unreadable"),
    ("unfit", "Cannot run here"),
]
_NAMES = {
    "environment": "subject",
    "env_steps": "total_progress",
    "episode_return_mean": "training_score",
    "return_best": "best_training_score",
    "return_least": "worst_training_score",
    "evaluation_return_mean": "evaluated_score",
}


def _mark(apps: Any, schema_editor: Any) -> None:
    """Number the events of the rounds that no resume has replaced: the last ones of each number."""
    events, rounds = apps.get_model("jobs", "Event").objects, apps.get_model("jobs", "Round").objects
    for job_id in rounds.order_by().values_list("job_id", flat=True).distinct():
        epochs = dict(rounds.filter(job_id=job_id).values_list("round_no", "epoch"))
        reported = events.filter(job_id=job_id, kind="round").order_by("-seq")
        found = [
            events.model(pk=pk, round_no=number, epoch=epochs.pop(number))
            for pk, number in reported.values_list("pk", "payload__report__round_no").iterator(2_000)
            if number in epochs
        ]
        events.bulk_update(found, ["round_no", "epoch"], batch_size=500)


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0002_reason_codes"),
        ("jobs", "0003_films_after_evaluations"),
        ("jobs", "0004_indexes_of_states"),
        ("jobs", "0005_waits_for_storage"),
        ("jobs", "0006_attempts_of_films"),
        ("jobs", "0007_neutral_names"),
        ("jobs", "0008_requests"),
        ("jobs", "0003_rounds_are_events"),
    ]

    dependencies = [
        ("jobs", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            "job",
            "reason_code",
            models.CharField(blank=True, choices=_REASONS, default="", max_length=30),
        ),
        migrations.AddConstraint(
            "job",
            models.CheckConstraint(
                condition=models.Q(("reason_code__in", [code for code, _ in _REASONS])),
                name="job_reason_code_known",
            ),
        ),
        migrations.AddIndex("job", models.Index(fields=["project", "observed"], name="job_by_state")),
        migrations.AddIndex("job", models.Index(fields=["project", "-since"], name="job_by_change")),
        migrations.AddIndex("job", models.Index(fields=["project", "cloud"], name="job_by_cloud")),
        *(migrations.RenameField("job", old, new) for old, new in _NAMES.items()),
        migrations.AddField("film", "attempt", models.IntegerField(default=0)),
        migrations.AlterField(
            "film",
            "asked_by",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RenameField("film", "asked_by", "requested_by"),
        migrations.AddField("event", "round_no", models.BigIntegerField(null=True)),
        migrations.AddField("event", "epoch", models.BigIntegerField(null=True)),
        migrations.RunPython(_mark, migrations.RunPython.noop),
        migrations.DeleteModel("Round"),
        migrations.AddConstraint(
            "event", models.UniqueConstraint(fields=["job", "round_no"], name="event_of_round_once")
        ),
        migrations.CreateModel(
            "Round", [], options={"proxy": True, "indexes": [], "constraints": []}, bases=("jobs.event",)
        ),
    ]
