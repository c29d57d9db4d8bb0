"""Jobs may pause because their recorded checkpoints cannot be read."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_archived_projects"),
        ("jobs", "0004_indexes_of_states"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="job",
            name="job_reason_code_known",
        ),
        migrations.AlterField(
            model_name="job",
            name="reason_code",
            field=models.CharField(
                blank=True,
                choices=[
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
                ],
                default="",
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "reason_code__in",
                        [
                            "",
                            "target",
                            "rounds",
                            "steps",
                            "minutes",
                            "no_progress",
                            "budget",
                            "paused",
                            "cancelled",
                            "failing",
                            "handover",
                            "lost",
                            "crashed",
                            "error",
                            "disk",
                            "unreadable",
                            "unfit",
                        ],
                    )
                ),
                name="job_reason_code_known",
            ),
        ),
    ]
