"""What changed since release 0.1.0: only known codes say why a job is in its state, and one says that recorded checkpoints
cannot be read; indexes for what runs, what changed last and what was launched on which cloud; what every kind of training
has is not named by reinforcement learning; films that no user requested, and how often a film was tried.
"""

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


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0002_reason_codes"),
        ("jobs", "0003_films_after_evaluations"),
        ("jobs", "0004_indexes_of_states"),
        ("jobs", "0005_waits_for_storage"),
        ("jobs", "0006_attempts_of_films"),
        ("jobs", "0007_neutral_names"),
        ("jobs", "0008_requests"),
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
    ]
