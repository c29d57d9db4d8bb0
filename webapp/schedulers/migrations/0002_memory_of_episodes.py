from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("schedulers", "0001_release_0_1")]

    operations = [
        migrations.AddField("episode", "memory_mb", models.JSONField(default=list)),
    ]
