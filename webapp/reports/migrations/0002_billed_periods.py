"""Bills are kept by account and billing period: a later bill replaces all lines of those that it has."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Sum
from django.db.models.functions import TruncMonth


def sort_lines_into_periods(apps, schema_editor):
    """Lines so far name no account; their period is the month of their day."""
    lines = apps.get_model("reports", "BilledLine")._base_manager
    periods = apps.get_model("reports", "BilledPeriod").objects
    lines.exclude(bill__state="ready").delete()
    lines.filter(replaced_by__state="ready").delete()
    months = lines.annotate(month=TruncMonth("day")).values_list("bill_id", "provider", "month")
    found = months.annotate(count=Count("pk"), amount=Sum("picodollars")).order_by("bill_id", "month")
    for bill_id, provider, month, count, amount in list(found):
        period = periods.create(
            bill_id=bill_id,
            provider=provider,
            account="",
            first_day=month,
            line_count=count,
            picodollars=int(amount),
        )
        of_month = lines.filter(
            bill_id=bill_id, provider=provider, day__year=month.year, day__month=month.month
        )
        of_month.update(period=period)


class Migration(migrations.Migration):
    dependencies = [("reports", "0001_release_0_1")]

    operations = [
        migrations.AddField("cloudbill", "replace_anyway", models.BooleanField(default=False)),
        migrations.CreateModel(
            name="BilledPeriod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider", models.CharField(max_length=30)),
                ("account", models.CharField(blank=True, max_length=100)),
                ("first_day", models.DateField()),
                ("used_from", models.DateField(null=True)),
                ("used_until", models.DateField(null=True)),
                ("line_count", models.BigIntegerField()),
                ("picodollars", models.BigIntegerField()),
                (
                    "bill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="periods",
                        to="reports.cloudbill",
                    ),
                ),
                (
                    "replaced_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="replaced",
                        to="reports.cloudbill",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("bill", "provider", "account", "first_day"), name="billed_period_once_a_bill"
                    )
                ]
            },
        ),
        migrations.AddField(
            "billedline",
            "period",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="lines",
                to="reports.billedperiod",
            ),
        ),
        migrations.AlterField(
            "billedline",
            "replaced_by",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="reports.cloudbill",
            ),
        ),
        migrations.RunPython(sort_lines_into_periods, migrations.RunPython.noop),
    ]
