"""A token without an end cannot be stored any more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0003_tokens_end"),
    ]

    operations = [
        migrations.AlterField(model_name="apitoken", name="expires_at", field=models.DateTimeField()),
    ]
