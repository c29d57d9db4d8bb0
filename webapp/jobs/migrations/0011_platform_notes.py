import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Notes of a job's platform belong to jobs. Their table stays as it is."""

    dependencies = [
        ("jobs", "0010_losses"),
        ("standing", "0002_asked_and_notes"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                    options={"db_table": "standing_platformnote"},
                ),
            ],
        ),
    ]
