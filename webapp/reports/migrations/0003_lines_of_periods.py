"""Lines of bills belong to a billing period. They need no id of their own any more."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0002_billed_periods")]

    operations = [
        migrations.RemoveConstraint("billedline", "billed_line_once_a_bill"),
        migrations.RemoveIndex("billedline", "billed_line_replaced"),
        migrations.RemoveField("billedline", "key"),
        migrations.RemoveField("billedline", "bill"),
        migrations.RemoveField("billedline", "replaced_by"),
        migrations.AlterField(
            "billedline",
            "period",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="lines",
                to="reports.billedperiod",
            ),
        ),
    ]
