"""Only known codes say why a job is in its state. Release 0.1.0 has it; installations made before it lack it."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_release_0_1"),
        ("jobs", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                            "unfit",
                        ],
                    )
                ),
                name="job_reason_code_known",
            ),
        ),
    ]
