"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("landscapes", "0001_initial"),
    ]

    initial = True

    dependencies = [
        ("jobs", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Surface",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("checkpoint", models.CharField(max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("round_no", models.BigIntegerField()),
                ("grid", models.IntegerField()),
                ("span", models.FloatField()),
                ("episodes", models.IntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("surveying", "Measuring"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("since", models.DateTimeField()),
                ("eigenvalues", models.JSONField(blank=True, default=list)),
                ("offsets", models.JSONField(blank=True, default=list)),
                ("points", models.JSONField(blank=True, default=list)),
                ("done", models.IntegerField(default=0)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="surfaces", to="jobs.job"
                    ),
                ),
            ],
            options={
                "db_table": "landscapes_surface",
                "ordering": ["-round_no", "-pk"],
                "indexes": [models.Index(fields=["state", "since"], name="surface_to_look_after")],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "sha256"), name="surface_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["queued", "surveying", "ready", "failed"])),
                        name="surface_state_known",
                    ),
                ],
            },
        ),
    ]
