"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import webapp.schedulers.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("schedulers", "0001_initial"), ("schedulers", "0002_best_agents")]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Scheduler",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.schedulers.models.new_scheduler_id,
                        editable=False,
                        max_length=20,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedulers",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="scheduler_name_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SchedulerTraining",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("asked_at", models.DateTimeField()),
                ("spec", models.JSONField()),
                ("platform", models.JSONField()),
                ("workload", models.CharField(max_length=100)),
                ("workload_key", models.CharField(max_length=32)),
                ("budget_picodollars", models.BigIntegerField()),
                ("search", models.CharField(blank=True, default="", max_length=60)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Training"),
                            ("done", "Trained"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("stop_asked", models.BooleanField(default=False)),
                ("reason", models.TextField(blank=True, default="")),
                ("since", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("crashes", models.IntegerField(default=0)),
                ("now", models.JSONField(blank=True, default=dict)),
                ("recorded_until", models.BigIntegerField(null=True)),
                ("learned_number", models.IntegerField(default=0)),
                ("learner", models.BinaryField(null=True)),
                ("best_number", models.IntegerField(default=0)),
                ("best_score", models.FloatField(null=True)),
                ("best_learner", models.BinaryField(null=True)),
                ("lease_owner", models.CharField(blank=True, default="", max_length=100)),
                ("lease_epoch", models.BigIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(null=True)),
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scheduler_trainings",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-asked_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Episode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("grid", "Recorded beforehand"),
                            ("rehearsal", "Rehearsal"),
                            ("real", "Real"),
                            ("judged", "Judged"),
                        ],
                        max_length=10,
                    ),
                ),
                ("number", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("rounds", models.IntegerField()),
                ("platform_s", models.FloatField()),
                ("wall_s", models.FloatField()),
                ("cost_picodollars", models.BigIntegerField()),
                ("best_return", models.FloatField(null=True)),
                ("reached", models.BooleanField()),
                ("score", models.FloatField(null=True)),
                ("actors", models.JSONField()),
                ("reports", models.JSONField(default=list)),
                (
                    "training",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="episodes",
                        to="schedulers.schedulertraining",
                    ),
                ),
            ],
            options={
                "ordering": ["training", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("training", "kind", "number"), name="scheduler_episode_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["grid", "rehearsal", "real", "judged"])),
                        name="scheduler_episode_kind_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Version",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                ("made_at", models.DateTimeField()),
                ("weights", models.TextField()),
                ("learner", models.BinaryField()),
                ("facts", models.JSONField()),
                (
                    "scheduler",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="schedulers.scheduler",
                    ),
                ),
                (
                    "training",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="version",
                        to="schedulers.schedulertraining",
                    ),
                ),
            ],
            options={
                "ordering": ["scheduler", "-number"],
                "constraints": [
                    models.UniqueConstraint(fields=("scheduler", "number"), name="scheduler_version_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="schedulertraining",
            name="begin_with",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="schedulers.version",
            ),
        ),
        migrations.AddIndex(
            model_name="schedulertraining",
            index=models.Index(fields=["state", "lease_expires_at"], name="scheduling_to_look_after"),
        ),
        migrations.AddConstraint(
            model_name="schedulertraining",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["queued", "running", "done", "stopped", "failed"])),
                name="scheduling_state_known",
            ),
        ),
    ]
