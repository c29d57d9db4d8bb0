from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_films"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="emulated",
            field=models.BooleanField(default=False),
        ),
    ]
