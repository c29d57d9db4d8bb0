"""What was asked for is called requested."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "0007_neutral_names")]

    operations = [
        migrations.RenameField("film", "asked_by", "requested_by"),
    ]
