"""Alerts about disks that are nearly full."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_archived_projects"),
        ("alerts", "0002_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="alert",
            name="alert_kind_known",
        ),
        migrations.AlterField(
            model_name="alert",
            name="kind",
            field=models.CharField(
                choices=[
                    ("budget", "Budget line"),
                    ("forecast", "Forecast over budget"),
                    ("job_stopped", "Stopped by its budget"),
                    ("job_failed", "Job failed"),
                    ("job_finished", "Job finished"),
                    ("burn", "Spending too fast"),
                    ("retries", "Calls keep failing"),
                    ("no_steps", "Spending without steps"),
                    ("orphan", "Unused cloud resource"),
                    ("report", "Report"),
                    ("bill", "Cloud's bill differs"),
                    ("channel", "Channel failing"),
                    ("disk", "Disk nearly full"),
                    ("rule", "Rule of the project"),
                    ("test", "Test message"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "budget",
                            "forecast",
                            "job_stopped",
                            "job_failed",
                            "job_finished",
                            "burn",
                            "retries",
                            "no_steps",
                            "orphan",
                            "report",
                            "bill",
                            "channel",
                            "disk",
                            "rule",
                            "test",
                        ],
                    )
                ),
                name="alert_kind_known",
            ),
        ),
    ]
