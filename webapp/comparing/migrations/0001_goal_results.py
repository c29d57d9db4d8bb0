"""The table of the board of goals. It is filled from finished jobs, so that one an installation already has is dropped."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_after_release_0_1"),
        ("jobs", "0002_after_release_0_1"),
    ]

    operations = [
        migrations.RunSQL("DROP TABLE IF EXISTS leaderboard_goalresult", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="GoalResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("subject", models.CharField(max_length=100)),
                ("algorithm", models.CharField(max_length=40)),
                ("policy", models.CharField(max_length=40)),
                ("cloud", models.CharField(max_length=80)),
                ("money", models.CharField(blank=True, default="", max_length=10)),
                ("goal", models.FloatField()),
                ("evaluated", models.BooleanField(default=False)),
                ("reached", models.BooleanField()),
                ("cost_picodollars", models.BigIntegerField(blank=True, null=True)),
                ("time_s", models.FloatField(blank=True, null=True)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="goal_result", to="jobs.job"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.project"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "subject"], name="goal_result_of_board")],
            },
        ),
    ]
