"""Each connection has names of its own in its account. Those made before go on with the names that they share."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0001_release_0_1")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="prefix",
            field=models.CharField(default="starling", editable=False, max_length=32),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.CheckConstraint(
                condition=models.Q(("prefix", ""), _negated=True), name="connection_prefix_given"
            ),
        ),
    ]
