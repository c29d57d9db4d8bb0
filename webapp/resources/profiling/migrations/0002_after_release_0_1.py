"""What changed since release 0.1.0: what was asked for is called requested."""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("profiling", "0002_requests")]

    dependencies = [("profiling", "0001_release_0_1")]

    operations = [
        migrations.RemoveIndex("memoryprofile", "profile_newest"),
        migrations.RenameField("memoryprofile", "asked_by", "requested_by"),
        migrations.RenameField("memoryprofile", "asked_at", "requested_at"),
        migrations.AlterModelOptions("memoryprofile", {"ordering": ["-requested_at", "-pk"]}),
        migrations.AddIndex(
            "memoryprofile",
            models.Index(fields=["project", "connection", "-requested_at"], name="profile_newest"),
        ),
    ]
