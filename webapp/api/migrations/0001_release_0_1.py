"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import webapp.accounts.models
import webapp.api.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("api", "0001_tokens"),
        ("api", "0002_made_once"),
        ("api", "0003_tokens_end"),
        ("api", "0004_tokens_say_when_they_end"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Caller",
            fields=[],
            options={
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("accounts.user",),
            managers=[
                ("objects", webapp.accounts.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.api.models.new_token_id,
                        editable=False,
                        max_length=20,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("scopes", models.JSONField(default=list)),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("hint", models.CharField(max_length=4)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("access_epoch", models.PositiveIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to="accounts.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-created_at"], name="api_token_of_person")],
            },
        ),
        migrations.CreateModel(
            name="Deed",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_name", models.CharField(max_length=90)),
                ("person", models.CharField(max_length=254)),
                ("at", models.DateTimeField()),
                ("what", models.CharField(max_length=200)),
                ("outcome", models.CharField(blank=True, default="", max_length=20)),
                ("address", models.CharField(blank=True, default="", max_length=45)),
                (
                    "token",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="deeds",
                        to="api.apitoken",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["token", "-at"], name="deed_of_token")],
            },
        ),
        migrations.CreateModel(
            name="Made",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                ("key", models.CharField(max_length=100)),
                ("sha256", models.CharField(max_length=64)),
                ("made_id", models.CharField(blank=True, default="", max_length=40)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "kind", "key"), name="api_key_made_once")
                ],
            },
        ),
    ]
