"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("standing", "0001_initial"),
        ("standing", "0002_asked_and_notes"),
    ]

    initial = True

    dependencies = [
        ("connections", "0001_release_0_1"),
        ("jobs", "0001_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="CreateTimes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.CharField(max_length=120, unique=True)),
                ("moments", models.JSONField(default=list)),
            ],
            options={
                "db_table": "standing_asked",
            },
        ),
        migrations.CreateModel(
            name="LogReading",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(blank=True, null=True)),
                ("again_at", models.DateTimeField(blank=True, null=True)),
                ("reads", models.IntegerField(default=0)),
                ("corrected", models.IntegerField(default=0)),
                ("sentence", models.CharField(blank=True, default="", max_length=300)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="log_reading", to="jobs.job"
                    ),
                ),
            ],
            options={
                "db_table": "standing_logreading",
            },
        ),
        migrations.CreateModel(
            name="Look",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(blank=True, null=True)),
                ("sentence", models.CharField(blank=True, default="", max_length=300)),
                ("failures", models.IntegerField(default=0)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("others", models.JSONField(blank=True, default=list)),
                (
                    "connection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="look",
                        to="connections.connection",
                    ),
                ),
            ],
            options={
                "db_table": "standing_look",
            },
        ),
        migrations.CreateModel(
            name="Holding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("provisioned", "Functions kept ready"),
                            ("container_group", "Container group"),
                        ],
                        max_length=20,
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("provider_id", models.CharField(blank=True, default="", max_length=600)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("intended", "Asked for"),
                            ("standing", "Stands"),
                            ("ending", "Ending"),
                            ("gone", "Gone"),
                            ("lost", "Lost"),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                ("facts", models.JSONField(blank=True, default=dict)),
                ("intended_at", models.DateTimeField()),
                ("since", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("missing_since", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "connection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="holdings",
                        to="connections.connection",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holdings",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "db_table": "standing_holding",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("intended", "standing", "ending"))),
                        fields=["connection"],
                        name="holding_live",
                    ),
                    models.Index(fields=["connection", "ended_at"], name="holding_ended"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("intended", "standing", "ending"))),
                        fields=("connection", "name"),
                        name="holding_of_a_name_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["intended", "standing", "ending", "gone", "lost"])),
                        name="holding_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state__in", ("gone", "lost"))),
                            models.Q(
                                ("ended_at__isnull", True), ("state__in", ("intended", "standing", "ending"))
                            ),
                            _connector="OR",
                        ),
                        name="holding_over_has_end",
                    ),
                ],
            },
        ),
    ]
