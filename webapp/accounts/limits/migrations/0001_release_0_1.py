"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("limits", "0001_counted"),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Counted",
            fields=[
                ("key", models.CharField(max_length=250, primary_key=True, serialize=False)),
                ("value", models.JSONField()),
                ("expires_unix_s", models.FloatField(db_index=True, null=True)),
            ],
        ),
    ]
