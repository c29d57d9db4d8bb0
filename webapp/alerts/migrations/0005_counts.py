"""An alert counts how often it was raised and how often it was sent."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("alerts", "0004_group_ends")]

    operations = [
        migrations.RenameField("alert", "times", "raise_count"),
        migrations.RenameField("alert", "turn", "send_count"),
    ]
