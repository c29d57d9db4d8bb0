"""The table of predictions."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0002_after_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Prediction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("round_no", models.BigIntegerField()),
                ("steps", models.BigIntegerField()),
                ("actors", models.IntegerField(blank=True, null=True)),
                ("limit_picodollars", models.BigIntegerField()),
                ("ends_by", models.CharField(max_length=10)),
                ("steps_p50", models.FloatField()),
                ("time_p10_s", models.FloatField()),
                ("time_p50_s", models.FloatField()),
                ("time_p90_s", models.FloatField()),
                ("cost_p10_picodollars", models.BigIntegerField()),
                ("cost_p50_picodollars", models.BigIntegerField()),
                ("cost_p90_picodollars", models.BigIntegerField()),
                ("score_p10", models.FloatField(blank=True, null=True)),
                ("score_p50", models.FloatField(blank=True, null=True)),
                ("score_p90", models.FloatField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("judged", "Judged"), ("void", "Not judged")],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("judged_at", models.DateTimeField(blank=True, null=True)),
                ("time_s", models.FloatField(blank=True, null=True)),
                ("cost_picodollars", models.BigIntegerField(blank=True, null=True)),
                ("score", models.FloatField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="predictions", to="jobs.job"
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["state"], name="prediction_to_judge")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("job",), name="prediction_open_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "judged", "void"])),
                        name="prediction_state_known",
                    ),
                ],
            },
        ),
    ]
