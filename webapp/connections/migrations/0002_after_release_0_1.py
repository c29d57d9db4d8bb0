"""What changed since release 0.1.0: each connection has names of its own in its account, and those made before go on with
the names that they share; what was asked for is called requested.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("connections", "0002_prefix_of_names"),
        ("connections", "0003_requests"),
    ]

    dependencies = [("connections", "0001_release_0_1")]

    operations = [
        migrations.AddField(
            "connection",
            "prefix",
            models.CharField(default="starling", editable=False, max_length=32),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            "connection",
            models.CheckConstraint(
                condition=models.Q(("prefix", ""), _negated=True), name="connection_prefix_given"
            ),
        ),
        migrations.RenameField("setup", "asked_mb", "requested_mb"),
        migrations.RenameField("setup", "asked_bucket", "requested_bucket"),
    ]
