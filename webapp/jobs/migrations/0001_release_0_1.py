"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import webapp.jobs.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_films"),
        ("jobs", "0003_emulated"),
        ("jobs", "0004_tags_and_groups"),
        ("jobs", "0005_run_table"),
        ("jobs", "0006_making_jobs"),
        ("jobs", "0007_listed_from_index"),
        ("jobs", "0008_packed_figures"),
        ("jobs", "0009_deleted"),
        ("jobs", "0010_losses"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="JobGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("of_seeds", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="job_groups",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "name"), name="job_group_once")],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.jobs.models.new_job_id,
                        editable=False,
                        max_length=20,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("spec", models.JSONField()),
                ("simulated", models.BooleanField(default=False)),
                ("emulated", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("idempotency_key", models.CharField(blank=True, max_length=100, null=True)),
                ("algorithm", models.CharField(blank=True, default="", max_length=40)),
                ("environment", models.CharField(blank=True, default="", max_length=100)),
                ("cloud", models.CharField(blank=True, default="", max_length=30)),
                ("note", models.TextField(blank=True, default="")),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "desired",
                    models.CharField(
                        choices=[("run", "Run"), ("paused", "Pause"), ("cancelled", "Stop")],
                        default="run",
                        max_length=10,
                    ),
                ),
                ("actors_least", models.IntegerField(blank=True, null=True)),
                ("actors_most", models.IntegerField(blank=True, null=True)),
                (
                    "observed",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("starting", "Starting"),
                            ("running", "Running"),
                            ("recovering", "Recovering"),
                            ("draining", "Stopping"),
                            ("paused", "Paused"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("cancelled", "Stopped"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "reason_code",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "Nothing special"),
                            ("target", "Target reached"),
                            ("rounds", "Rounds done"),
                            ("steps", "Steps done"),
                            ("minutes", "Time over"),
                            ("no_progress", "No progress"),
                            ("budget", "Budget"),
                            ("paused", "Paused on request"),
                            ("cancelled", "Stopped on request"),
                            ("failing", "Calls or updates failed"),
                            ("handover", "Worker stopped"),
                            ("lost", "Lease lost"),
                            ("crashed", "Process died"),
                            ("error", "Error in the run"),
                            ("disk", "Checkpoint not written"),
                            ("unfit", "Cannot run here"),
                        ],
                        default="",
                        max_length=30,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("since", models.DateTimeField()),
                ("last_seq", models.BigIntegerField(default=0)),
                ("lease_owner", models.CharField(blank=True, default="", max_length=100)),
                ("lease_epoch", models.BigIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("crashes", models.IntegerField(default=0)),
                ("losses", models.IntegerField(default=0)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("summary", models.JSONField(blank=True, default=dict)),
                ("round_no", models.BigIntegerField(default=0)),
                ("env_steps", models.BigIntegerField(default=0)),
                ("actors", models.IntegerField(default=0)),
                ("episode_return_mean", models.FloatField(blank=True, null=True)),
                ("return_best", models.FloatField(blank=True, null=True)),
                ("return_least", models.FloatField(blank=True, null=True)),
                ("evaluation_return_mean", models.FloatField(blank=True, null=True)),
                ("platform_s", models.FloatField(default=0.0)),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="accounts.project",
                    ),
                ),
                ("groups", models.ManyToManyField(related_name="jobs", to="jobs.jobgroup")),
            ],
        ),
        migrations.CreateModel(
            name="Origin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "way",
                    models.CharField(
                        choices=[
                            ("clone", "Cloned from"),
                            ("again", "Runs again what ran as"),
                            ("fork", "Forked from"),
                        ],
                        max_length=10,
                    ),
                ),
                ("checkpoint", models.CharField(blank=True, default="", max_length=200)),
                ("round_no", models.BigIntegerField(blank=True, null=True)),
                ("sha256", models.CharField(blank=True, default="", max_length=64)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="origin", to="jobs.job"
                    ),
                ),
                (
                    "of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="descendants",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("way__in", ["clone", "again", "fork"])), name="origin_way_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("way", "fork"), _negated=True),
                            ("round_no__isnull", False),
                            _connector="OR",
                        ),
                        name="fork_knows_its_round",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlatformNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                ("held_back", models.CharField(blank=True, default="", max_length=400)),
                ("cache_hits", models.BigIntegerField(default=0)),
                ("cache_misses", models.BigIntegerField(default=0)),
                ("cache_bytes", models.BigIntegerField(default=0)),
                ("at", models.DateTimeField()),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="platform_note",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "db_table": "standing_platformnote",
            },
        ),
        migrations.CreateModel(
            name="Round",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("round_no", models.BigIntegerField()),
                ("epoch", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("report", models.JSONField()),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="rounds", to="jobs.job"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("job", "round_no"), name="round_once")],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("address", models.CharField(max_length=1000)),
                ("created_at", models.DateTimeField()),
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("project", "name"), name="saved_view_once")],
            },
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tags",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("project", "name"), name="tag_once")],
            },
        ),
        migrations.AddField(
            model_name="job",
            name="tags",
            field=models.ManyToManyField(related_name="jobs", to="jobs.tag"),
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=100)),
                ("begun_with", models.CharField(blank=True, default="", max_length=300)),
                ("values", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                ("saved_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drafts",
                        to="accounts.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-saved_at", "-pk"],
                "indexes": [models.Index(fields=["project", "user", "-saved_at"], name="draft_of_person")],
            },
        ),
        migrations.CreateModel(
            name="Film",
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
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("filming", "Filming"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("since", models.DateTimeField()),
                ("file", models.CharField(blank=True, default="", max_length=200)),
                ("facts", models.JSONField(blank=True, default=dict)),
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
                        on_delete=django.db.models.deletion.CASCADE, related_name="films", to="jobs.job"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state", "since"], name="film_to_look_after")],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "sha256"), name="film_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["queued", "filming", "ready", "failed"])),
                        name="film_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("state", "State"),
                            ("started", "Started"),
                            ("round", "Round"),
                            ("evaluation", "Evaluation"),
                            ("checkpoint", "Checkpoint"),
                            ("call_failed", "Call failed"),
                            ("resumed", "Resumed"),
                            ("budget", "Budget"),
                            ("stopped", "Stopped"),
                            ("note", "Note"),
                        ],
                        max_length=12,
                    ),
                ),
                ("payload", models.JSONField(default=dict)),
                ("figures", models.BinaryField(null=True)),
                ("packing", models.IntegerField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="jobs.job"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "seq"), name="event_number_once"),
                    models.CheckConstraint(condition=models.Q(("seq__gte", 1)), name="event_number_from_1"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("round_no", models.BigIntegerField()),
                ("epoch", models.BigIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("byte_count", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="checkpoints", to="jobs.job"
                    ),
                ),
            ],
            options={
                "ordering": [
                    models.OrderBy(models.F("round_no"), descending=True),
                    models.OrderBy(models.F("epoch"), descending=True),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "round_no", "epoch"), name="checkpoint_once")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["project", "-created_at"], name="job_of_project"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["project", "archived_at", "-created_at", "id"], name="job_listed"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["observed", "lease_expires_at"], name="job_to_look_after"),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                fields=("project", "idempotency_key"), name="job_asked_for_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("last_seq__gte", 0)), name="job_last_seq_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("deleted_at", None), ("archived_at__isnull", False), _connector="OR"),
                name="job_archived_before_deleted",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("desired__in", ["run", "paused", "cancelled"])), name="job_desired_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "observed__in",
                        [
                            "queued",
                            "starting",
                            "running",
                            "recovering",
                            "draining",
                            "paused",
                            "succeeded",
                            "failed",
                            "cancelled",
                        ],
                    )
                ),
                name="job_observed_known",
            ),
        ),
    ]
