"""What was asked for is called requested."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("connections", "0002_prefix_of_names")]

    operations = [
        migrations.RenameField("setup", "asked_mb", "requested_mb"),
        migrations.RenameField("setup", "asked_bucket", "requested_bucket"),
    ]
