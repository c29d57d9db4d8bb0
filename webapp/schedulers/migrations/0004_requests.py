"""What was asked for is called requested."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("schedulers", "0003_leases_as_of_jobs")]

    operations = [
        migrations.RenameField("schedulertraining", "asked_by", "requested_by"),
        migrations.RenameField("schedulertraining", "asked_at", "requested_at"),
        migrations.RenameField("schedulertraining", "stop_asked", "stop_requested"),
        migrations.AlterModelOptions("schedulertraining", {"ordering": ["-requested_at", "-pk"]}),
    ]
