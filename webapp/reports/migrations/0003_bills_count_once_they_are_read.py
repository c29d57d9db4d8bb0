# Bills are written in many small transactions and count once they are read to their end.

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_guide_put_away"),
        ("jobs", "0009_deleted"),
        ("reports", "0002_a_schedule_can_be_stopped"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="billedline",
            options={"base_manager_name": "every"},
        ),
        migrations.AlterModelManagers(
            name="billedline",
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="billedline",
            name="billed_line_once",
        ),
        migrations.AddField(
            model_name="billedline",
            name="replaced_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="replaced",
                to="reports.cloudbill",
            ),
        ),
        migrations.AddField(
            model_name="cloudbill",
            name="attempt",
            field=models.IntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="billedline",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.project",
            ),
        ),
        migrations.AddIndex(
            model_name="billedline",
            index=models.Index(
                condition=models.Q(("replaced_by__isnull", False)),
                fields=["replaced_by"],
                name="billed_line_replaced",
            ),
        ),
        migrations.AddConstraint(
            model_name="billedline",
            constraint=models.UniqueConstraint(
                fields=("project", "key", "bill"), name="billed_line_once_a_bill"
            ),
        ),
    ]
