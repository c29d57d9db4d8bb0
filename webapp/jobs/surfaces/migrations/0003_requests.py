"""What was asked for is called requested."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("surfaces", "0002_attempts_of_surfaces")]

    operations = [
        migrations.RenameField("surface", "asked_by", "requested_by"),
    ]
