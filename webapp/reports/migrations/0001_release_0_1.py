"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("reports", "0001_initial"),
        ("reports", "0002_a_schedule_can_be_stopped"),
        ("reports", "0003_bills_count_once_they_are_read"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0001_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="CloudBill",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=200)),
                ("layout", models.CharField(max_length=30)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Waiting"),
                            ("building", "Building"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("row_count", models.BigIntegerField(default=0)),
                ("kept_count", models.BigIntegerField(default=0)),
                ("attempt", models.IntegerField(default=0)),
                ("since", models.DateTimeField()),
                (
                    "imported_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                "constraints": [
                    models.UniqueConstraint(fields=("project", "sha256"), name="cloud_bill_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="BilledLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=64)),
                ("day", models.DateField()),
                ("provider", models.CharField(max_length=30)),
                ("service", models.CharField(max_length=100)),
                ("what", models.CharField(blank=True, default="", max_length=200)),
                ("resource", models.CharField(blank=True, default="", max_length=500)),
                (
                    "matched_by",
                    models.CharField(
                        choices=[
                            ("tag", "Its tag names the job"),
                            ("ours", "Its tag or name says that it is Starling's"),
                            ("day", "Only that day's service"),
                            ("nothing", "Nothing of ours that day"),
                        ],
                        max_length=10,
                    ),
                ),
                ("picodollars", models.BigIntegerField()),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "bill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="reports.cloudbill",
                    ),
                ),
                (
                    "replaced_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="replaced",
                        to="reports.cloudbill",
                    ),
                ),
            ],
            options={
                "base_manager_name": "every",
                "indexes": [
                    models.Index(fields=["project", "day"], name="billed_line_of_day"),
                    models.Index(
                        condition=models.Q(("replaced_by__isnull", False)),
                        fields=["replaced_by"],
                        name="billed_line_replaced",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "key", "bill"), name="billed_line_once_a_bill")
                ],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ReportFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("question", models.JSONField()),
                ("format", models.CharField(max_length=10)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Waiting"),
                            ("building", "Building"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("asked_at", models.DateTimeField()),
                ("since", models.DateTimeField()),
                ("rows_done", models.BigIntegerField(default=0)),
                ("rows_of", models.BigIntegerField(default=0)),
                ("file", models.CharField(blank=True, default="", max_length=200)),
                ("byte_count", models.BigIntegerField(default=0)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state", "since"], name="report_file_to_look_after")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["queued", "building", "ready", "failed"])),
                        name="report_file_state_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "every",
                    models.CharField(
                        choices=[("week", "Every week"), ("month", "Every month")], max_length=10
                    ),
                ),
                ("by", models.CharField(max_length=10)),
                ("prices", models.CharField(default="actual", max_length=10)),
                ("formats", models.JSONField()),
                ("created_at", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.project"
                    ),
                ),
                ("recipients", models.ManyToManyField(related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name="Sending",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_day", models.DateField()),
                ("last_day", models.DateField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("sending", "Sending"),
                            ("waiting", "Trying again"),
                            ("sent", "Sent"),
                            ("failed", "Not sent"),
                        ],
                        default="sending",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("attempts", models.IntegerField(default=1)),
                ("since", models.DateTimeField()),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sendings",
                        to="reports.schedule",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("schedule", "first_day"), name="sending_once_a_period")
                ],
            },
        ),
    ]
