import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SetUp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "aim",
                    models.CharField(
                        choices=[("set_up", "Set up"), ("take_down", "Take down")], max_length=9
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("never", "Not tested"),
                            ("asked", "Waiting"),
                            ("running", "Testing"),
                            ("done", "Tested"),
                        ],
                        default="never",
                        max_length=8,
                    ),
                ),
                ("number", models.IntegerField(default=0)),
                ("since", models.DateTimeField()),
                ("asked_mb", models.JSONField(default=list)),
                ("ready_mb", models.JSONField(default=list)),
                ("steps", models.JSONField(default=list)),
                (
                    "connection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="set_up",
                        to="credentials.connection",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("aim__in", ["set_up", "take_down"])), name="set_up_aim_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["never", "asked", "running", "done"])),
                        name="set_up_state_known",
                    ),
                ],
            },
        ),
    ]
