import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        ("jobs", "0002_after_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="Tracker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=[("mlflow", "MLflow"), ("wandb", "W&B")], max_length=8)),
                ("address", models.CharField(blank=True, default="", max_length=300)),
                ("place", models.CharField(max_length=120)),
                ("on", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trackers",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["kind"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "kind"), name="tracker_kind_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["mlflow", "wandb"])), name="tracker_kind_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TrackerSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("field", models.CharField(max_length=40)),
                ("key_id", models.CharField(db_index=True, max_length=16)),
                ("wrapped_key", models.BinaryField()),
                ("ciphertext", models.BinaryField()),
                ("hint", models.CharField(blank=True, default="", max_length=4)),
                ("set_at", models.DateTimeField()),
                (
                    "tracker",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="trackers.tracker",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tracker", "field"), name="tracker_secret_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="TrackedRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=[("mlflow", "MLflow"), ("wandb", "W&B")], max_length=8)),
                ("url", models.CharField(blank=True, default="", max_length=600)),
                ("problem", models.CharField(blank=True, default="", max_length=400)),
                ("at", models.DateTimeField()),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tracked_runs",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["kind"],
                "constraints": [models.UniqueConstraint(fields=("job", "kind"), name="tracked_run_once")],
            },
        ),
    ]
