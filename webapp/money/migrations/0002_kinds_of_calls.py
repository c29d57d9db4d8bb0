"""A charge may be for any kind of call that there is. Stored charges keep theirs."""

from django.db import migrations, models

import webapp.money.models


class Migration(migrations.Migration):
    dependencies = [("money", "0001_release_0_1")]

    operations = [
        migrations.AlterField(
            model_name="charge",
            name="kind",
            field=models.CharField(choices=webapp.money.models.charge_kinds, max_length=20),
        ),
        migrations.AddConstraint(
            model_name="charge",
            constraint=models.CheckConstraint(condition=~models.Q(("kind", "")), name="charge_has_a_kind"),
        ),
    ]
