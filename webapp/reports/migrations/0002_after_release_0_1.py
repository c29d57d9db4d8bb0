"""What changed since release 0.1.0: bills are kept by account and billing period, so that a later bill replaces all lines of
those that it has, and lines need no id and no bill of their own; how often a report was tried; what was asked for is called
requested.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Sum
from django.db.models.functions import TruncMonth


def _sort_lines_into_periods(apps, schema_editor):
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
    # PostgreSQL alters no table that has checks left for the end of the transaction.
    schema_editor.connection.check_constraints()


class Migration(migrations.Migration):
    replaces = [
        ("reports", "0002_billed_periods"),
        ("reports", "0003_lines_of_periods"),
        ("reports", "0004_attempts_of_reports"),
        ("reports", "0005_requests"),
    ]

    dependencies = [("reports", "0001_release_0_1")]

    operations = [
        migrations.AddField("cloudbill", "replace_anyway", models.BooleanField(default=False)),
        migrations.CreateModel(
            "BilledPeriod",
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
        migrations.RunPython(_sort_lines_into_periods, migrations.RunPython.noop),
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
        migrations.AddField("reportfile", "attempt", models.IntegerField(default=0)),
        migrations.RenameField("reportfile", "asked_by", "requested_by"),
        migrations.RenameField("reportfile", "asked_at", "requested_at"),
    ]
