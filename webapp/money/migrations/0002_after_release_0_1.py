"""What changed since release 0.1.0: a charge may be for any kind of call that there is, and stored charges keep theirs; a
forecast has parts.
"""

from django.db import migrations, models

import webapp.money.models


class Migration(migrations.Migration):
    replaces = [
        ("money", "0002_kinds_of_calls"),
        ("money", "0003_forecast_parts"),
    ]

    dependencies = [("money", "0001_release_0_1")]

    operations = [
        migrations.AlterField(
            "charge", "kind", models.CharField(choices=webapp.money.models.charge_kinds, max_length=20)
        ),
        migrations.AddConstraint(
            "charge", models.CheckConstraint(condition=~models.Q(("kind", "")), name="charge_has_a_kind")
        ),
        migrations.AddField("launchforecast", "parts", models.JSONField(default=dict)),
    ]
