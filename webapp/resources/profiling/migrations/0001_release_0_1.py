"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("profiling", "0001_memory_profile"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        ("connections", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MemoryProfile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("plan", models.JSONField()),
                ("keep", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("asked", "Waiting"), ("running", "Profiling"), ("done", "Done")],
                        default="asked",
                        max_length=8,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("set_up_number", models.IntegerField(null=True)),
                ("made_mb", models.JSONField(default=list)),
                ("steps", models.JSONField(default=list)),
                ("runs", models.JSONField(default=list)),
                ("limit_picodollars", models.BigIntegerField()),
                ("spent_picodollars", models.BigIntegerField(default=0)),
                ("problem", models.CharField(blank=True, default="", max_length=500)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "connection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_profiles",
                        to="connections.connection",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_profiles",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-asked_at", "-pk"],
                "indexes": [
                    models.Index(fields=["project", "connection", "-asked_at"], name="profile_newest")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["asked", "running", "done"])),
                        name="profile_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("spent_picodollars__gte", 0), ("limit_picodollars__gte", 0)),
                        name="profile_money_not_negative",
                    ),
                ],
            },
        ),
    ]
