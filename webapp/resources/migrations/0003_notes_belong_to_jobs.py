from django.db import migrations


class Migration(migrations.Migration):
    """Notes of a job's platform belong to jobs. Their table stays as it is."""

    dependencies = [
        ("jobs", "0011_platform_notes"),
        ("standing", "0002_asked_and_notes"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name="PlatformNote")]),
    ]
