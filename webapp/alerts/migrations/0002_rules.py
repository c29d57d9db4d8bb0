"""Alert rules of a project's own."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_release_0_1"),
        ("alerts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Rule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.CharField(max_length=80)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
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
                            "rule",
                            "test",
                        ],
                    )
                ),
                name="alert_kind_known",
            ),
        ),
        migrations.AddField(
            model_name="rule",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="rule",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="alert_rules", to="accounts.project"
            ),
        ),
        migrations.AddConstraint(
            model_name="rule",
            constraint=models.UniqueConstraint(fields=("project", "text"), name="alert_rule_once"),
        ),
    ]
