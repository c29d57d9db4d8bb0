from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_deleted"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="losses",
            field=models.IntegerField(default=0),
        ),
    ]
