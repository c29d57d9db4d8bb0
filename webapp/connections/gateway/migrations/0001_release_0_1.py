"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("gateway", "0001_initial"), ("gateway", "0002_pullers_by_token")]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0001_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="Box",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="box",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                ("closed", models.BooleanField(default=False)),
                ("stay_until_unix_s", models.FloatField(default=0.0)),
            ],
        ),
        migrations.CreateModel(
            name="PulledCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("call_id", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("leased", "Leased"),
                            ("answered", "Answered"),
                            ("used_up", "Used up"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("taken", models.BooleanField(default=False)),
                ("began", models.JSONField(default=list)),
                ("puller", models.CharField(blank=True, default="", max_length=100)),
                ("begin_by_unix_s", models.FloatField()),
                ("lease_s", models.FloatField()),
                ("most_s", models.FloatField()),
                ("most_bytes", models.BigIntegerField()),
                ("most_starts", models.IntegerField()),
                ("offered_unix_s", models.FloatField()),
                ("leased_unix_s", models.FloatField(default=0.0)),
                ("lease_until_unix_s", models.FloatField(default=0.0)),
                ("heard_unix_s", models.FloatField(default=0.0)),
                (
                    "box",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="calls", to="gateway.box"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["box", "state", "taken"], name="call_of_box")],
                "constraints": [
                    models.UniqueConstraint(fields=("box", "call_id"), name="call_offered_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "leased", "answered", "used_up", "withdrawn"])
                        ),
                        name="pulled_call_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BoxToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("made_at", models.DateTimeField()),
                (
                    "box",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tokens", to="gateway.box"
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Parcel",
            fields=[
                (
                    "call",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="parcel",
                        serialize=False,
                        to="gateway.pulledcall",
                    ),
                ),
                ("data", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="SeenPuller",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("unit", models.CharField(max_length=100)),
                ("token", models.CharField(blank=True, default="", max_length=16)),
                ("first_seen_unix_s", models.FloatField()),
                ("last_seen_unix_s", models.FloatField()),
                ("leaving", models.BooleanField(default=False)),
                (
                    "box",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="pullers", to="gateway.box"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("box", "name"), name="puller_once")],
            },
        ),
        migrations.CreateModel(
            name="HeldWeights",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("data", models.BinaryField()),
                (
                    "box",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="weights", to="gateway.box"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("box", "sha256"), name="weights_once")],
            },
        ),
    ]
