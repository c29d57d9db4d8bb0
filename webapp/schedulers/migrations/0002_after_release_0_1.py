"""What changed since release 0.1.0: an episode has its memory; leases are as those of jobs; what was asked for is called
requested.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("schedulers", "0002_memory_of_episodes"),
        ("schedulers", "0003_leases_as_of_jobs"),
        ("schedulers", "0004_requests"),
    ]

    dependencies = [("schedulers", "0001_release_0_1")]

    operations = [
        migrations.AddField("episode", "memory_mb", models.JSONField(default=list)),
        migrations.AlterField(
            "schedulertraining", "lease_expires_at", models.DateTimeField(blank=True, null=True)
        ),
        migrations.RenameField("schedulertraining", "asked_by", "requested_by"),
        migrations.RenameField("schedulertraining", "asked_at", "requested_at"),
        migrations.RenameField("schedulertraining", "stop_asked", "stop_requested"),
        migrations.AlterModelOptions("schedulertraining", {"ordering": ["-requested_at", "-pk"]}),
    ]
