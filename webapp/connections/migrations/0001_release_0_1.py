"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import webapp.connections.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("credentials", "0001_initial"),
        ("credentials", "0002_set_up"),
        ("credentials", "0003_bucket_and_profile"),
        ("credentials", "0004_image_of_containers"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Connection",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.connections.models.new_connection_id,
                        editable=False,
                        max_length=20,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("aws_role", "AWS role"),
                            ("aws_keys", "AWS access keys"),
                            ("azure_principal", "Azure service principal"),
                        ],
                        max_length=16,
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("region", models.CharField(max_length=40)),
                ("emulated", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("role_arn", models.CharField(blank=True, default="", max_length=600)),
                ("external_id", models.CharField(blank=True, default="", max_length=64)),
                ("access_key_id", models.CharField(blank=True, default="", max_length=128)),
                ("account_id", models.CharField(blank=True, default="", max_length=40)),
                ("tenant_id", models.CharField(blank=True, default="", max_length=40)),
                ("client_id", models.CharField(blank=True, default="", max_length=40)),
                ("subscription_id", models.CharField(blank=True, default="", max_length=40)),
                ("resource_group", models.CharField(blank=True, default="", max_length=90)),
                (
                    "test_state",
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
                ("test_no", models.IntegerField(default=0)),
                ("test_since", models.DateTimeField(blank=True, null=True)),
                ("test_report", models.JSONField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="connections",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "db_table": "credentials_connection",
                "ordering": ["name", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="connection_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("external_id", ""), _negated=True),
                        fields=("external_id",),
                        name="external_id_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["aws_role", "aws_keys", "azure_principal"])),
                        name="connection_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("test_state__in", ["never", "asked", "running", "done"])),
                        name="connection_test_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SealedSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("field", models.CharField(max_length=40)),
                ("key_id", models.CharField(db_index=True, max_length=16)),
                ("wrapped_key", models.BinaryField()),
                ("ciphertext", models.BinaryField()),
                ("hint", models.CharField(blank=True, default="", max_length=4)),
                ("set_at", models.DateTimeField()),
                (
                    "connection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="connections.connection",
                    ),
                ),
            ],
            options={
                "db_table": "credentials_sealedsecret",
                "constraints": [models.UniqueConstraint(fields=("connection", "field"), name="secret_once")],
            },
        ),
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
                        choices=[("set_up", "Set up"), ("take_down", "Take down"), ("profile", "Profile")],
                        max_length=9,
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
                ("asked_bucket", models.BooleanField(default=False)),
                ("ready_bucket", models.BooleanField(default=False)),
                ("image", models.CharField(blank=True, default="", max_length=300)),
                ("ready_image", models.CharField(blank=True, default="", max_length=300)),
                ("steps", models.JSONField(default=list)),
                (
                    "connection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="set_up",
                        to="connections.connection",
                    ),
                ),
            ],
            options={
                "db_table": "credentials_setup",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("aim__in", ["set_up", "take_down", "profile"])),
                        name="set_up_aim_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["never", "asked", "running", "done"])),
                        name="set_up_state_known",
                    ),
                ],
            },
        ),
    ]
