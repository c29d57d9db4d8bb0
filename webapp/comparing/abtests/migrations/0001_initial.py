"""The tables of A/B tests."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0002_after_release_0_1"),
        ("money", "0002_after_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="ABTest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("change", models.CharField(max_length=300)),
                ("field_title", models.CharField(max_length=100)),
                ("old_value", models.CharField(max_length=100)),
                ("new_value", models.CharField(max_length=100)),
                ("effect", models.FloatField()),
                ("most_pairs", models.IntegerField()),
                ("first_seed", models.BigIntegerField()),
                ("evaluated", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("better", "Better"),
                            ("worse", "Worse"),
                            ("no_difference", "No difference found"),
                            ("out_of_money", "Budget used up"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                        ],
                        default="running",
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("pairs", models.IntegerField(default=0)),
                ("difference", models.FloatField(blank=True, null=True)),
                ("key", models.CharField(blank=True, max_length=100, null=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="money.budget"
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ab_test",
                        to="jobs.jobgroup",
                    ),
                ),
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ab_tests",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [models.Index(fields=["state"], name="ab_test_to_look_after")],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "key"), name="ab_test_asked_for_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "running",
                                    "better",
                                    "worse",
                                    "no_difference",
                                    "out_of_money",
                                    "failed",
                                    "stopped",
                                ],
                            )
                        ),
                        name="ab_test_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pair",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                (
                    "a",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "b",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "test",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="abtests.abtest"
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [models.UniqueConstraint(fields=("test", "number"), name="ab_test_pair_once")],
            },
        ),
    ]
