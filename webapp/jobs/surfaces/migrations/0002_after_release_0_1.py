"""What changed since release 0.1.0: how often a surface was tried; what was asked for is called requested."""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("surfaces", "0002_attempts_of_surfaces"),
        ("surfaces", "0003_requests"),
    ]

    dependencies = [("surfaces", "0001_release_0_1")]

    operations = [
        migrations.AddField("surface", "attempt", models.IntegerField(default=0)),
        migrations.RenameField("surface", "asked_by", "requested_by"),
    ]
