"""What was asked for is called requested."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reports", "0004_attempts_of_reports")]

    operations = [
        migrations.RenameField("reportfile", "asked_by", "requested_by"),
        migrations.RenameField("reportfile", "asked_at", "requested_at"),
    ]
