"""What changed since release 0.1.0: rules of a project's own; alerts about disks that are nearly full; an alert says which
others it covers, and how often it was raised and sent.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_KINDS = [
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
]


class Migration(migrations.Migration):
    replaces = [
        ("alerts", "0002_rules"),
        ("alerts", "0003_disk_space"),
        ("alerts", "0004_group_ends"),
        ("alerts", "0005_counts"),
    ]

    dependencies = [
        ("alerts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            "Rule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.CharField(max_length=80)),
                ("created_at", models.DateTimeField()),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alert_rules",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [models.UniqueConstraint(fields=("project", "text"), name="alert_rule_once")],
            },
        ),
        migrations.RemoveConstraint("alert", "alert_kind_known"),
        migrations.AlterField("alert", "kind", models.CharField(choices=_KINDS, max_length=16)),
        migrations.AddConstraint(
            "alert",
            models.CheckConstraint(
                condition=models.Q(("kind__in", [kind for kind, _ in _KINDS])), name="alert_kind_known"
            ),
        ),
        migrations.AddField("alert", "covers", models.JSONField(blank=True, default=list)),
        migrations.RenameField("alert", "times", "raise_count"),
        migrations.RenameField("alert", "turn", "send_count"),
    ]
