"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import webapp.alerts.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("alerts", "0001_initial"),
        ("alerts", "0002_over"),
        ("alerts", "0003_a_clouds_bill_may_differ"),
        ("alerts", "0004_mail_consent_and_hourly_limits"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("budget", "Budget line"),
                            ("forecast", "Forecast over budget"),
                            ("job_stopped", "Stopped by its budget"),
                            ("job_failed", "Job failed"),
                            ("job_finished", "Job finished"),
                            ("burn", "Spending too fast"),
                            ("retries", "Calls keep failing"),
                            ("no_steps", "Spending without steps"),
                            ("orphan", "Unused cloud resource"),
                            ("report", "Report"),
                            ("bill", "Cloud's bill differs"),
                            ("channel", "Channel failing"),
                            ("test", "Test message"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject", models.CharField(max_length=120)),
                ("sentence", models.TextField()),
                (
                    "severity",
                    models.CharField(
                        choices=[
                            ("info", "Good to know"),
                            ("warning", "Look at it"),
                            ("critical", "Act now"),
                        ],
                        max_length=8,
                    ),
                ),
                ("dedupe_key", models.CharField(max_length=200)),
                ("unreal", models.CharField(blank=True, default="", max_length=32)),
                ("over_words", models.TextField(blank=True, default="")),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("told_at", models.DateTimeField()),
                ("times", models.IntegerField(default=1)),
                ("turn", models.IntegerField(default=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("acknowledged", "Acknowledged"),
                            ("snoozed", "Snoozed"),
                            ("resolved", "Over"),
                        ],
                        default="open",
                        max_length=12,
                    ),
                ),
                ("state_at", models.DateTimeField()),
                ("snoozed_until", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="accounts.project",
                    ),
                ),
                (
                    "state_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "-told_at"], name="alert_of_project"),
                    models.Index(fields=["project", "dedupe_key"], name="alert_by_key"),
                    models.Index(
                        condition=models.Q(("state", "snoozed")),
                        fields=["snoozed_until"],
                        name="alert_to_wake",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            models.Q(("state", "resolved"), _negated=True), ("project__isnull", False)
                        ),
                        fields=("project", "dedupe_key"),
                        name="alert_stands_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            models.Q(("state", "resolved"), _negated=True), ("project__isnull", True)
                        ),
                        fields=("dedupe_key",),
                        name="installation_alert_stands_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "budget",
                                    "forecast",
                                    "job_stopped",
                                    "job_failed",
                                    "job_finished",
                                    "burn",
                                    "retries",
                                    "no_steps",
                                    "orphan",
                                    "report",
                                    "bill",
                                    "channel",
                                    "test",
                                ],
                            )
                        ),
                        name="alert_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("severity__in", ["info", "warning", "critical"])),
                        name="alert_severity_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "acknowledged", "snoozed", "resolved"])),
                        name="alert_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.alerts.models.new_channel_id,
                        editable=False,
                        max_length=20,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "way",
                    models.CharField(
                        choices=[("email", "E-mail"), ("chat", "Chat"), ("webhook", "Webhook")], max_length=8
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("built_in", models.BooleanField(default=False)),
                ("on", models.BooleanField(default=True)),
                ("silent_kinds", models.JSONField(blank=True, default=list)),
                ("addresses", models.JSONField(blank=True, default=list)),
                ("place", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.DateTimeField()),
                ("failures", models.IntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("last_sent_at", models.DateTimeField(blank=True, null=True)),
                ("last_failed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="channels",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-built_in", "name", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="channel_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("built_in", True), ("project__isnull", False)),
                        fields=("project",),
                        name="built_in_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("built_in", True), ("project__isnull", True)),
                        fields=("built_in",),
                        name="built_in_of_installation_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("way__in", ["email", "chat", "webhook"])),
                        name="channel_way_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChannelSecret",
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
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="alerts.channel",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("channel", "field"), name="channel_secret_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=webapp.alerts.models.new_delivery_id,
                        editable=False,
                        max_length=30,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("turn", models.IntegerField()),
                ("over", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("sending", "Sending"),
                            ("sent", "Sent"),
                            ("failed", "Given up"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("attempts", models.IntegerField(default=0)),
                ("replays", models.IntegerField(default=0)),
                ("holder", models.CharField(blank=True, default="", max_length=160)),
                ("held_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                ("response_status", models.IntegerField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="alerts.alert",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="alerts.channel",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["due_at"], name="delivery_due"
                    ),
                    models.Index(
                        condition=models.Q(("state", "sending")), fields=["held_until"], name="delivery_held"
                    ),
                    models.Index(fields=["channel", "-created_at"], name="delivery_log"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("alert", "channel", "turn"), name="delivery_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "sending", "sent", "failed"])),
                        name="delivery_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HourlyUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "what",
                    models.CharField(choices=[("mail", "Mails"), ("test", "Test messages")], max_length=4),
                ),
                ("at", models.DateTimeField()),
                ("count", models.IntegerField()),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "what", "at"], name="hourly_use_of_project")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("what__in", ["mail", "test"])), name="hourly_use_known"
                    ),
                    models.CheckConstraint(condition=models.Q(("count__gt", 0)), name="hourly_use_is_some"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MailConsent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.EmailField(max_length=254)),
                ("ask_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.IntegerField(default=0)),
                ("asked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[("", "No answer"), ("yes", "Agreed"), ("no", "Declined")],
                        default="",
                        max_length=3,
                    ),
                ),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mail_consents",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ask_at__isnull", False)),
                        fields=["ask_at"],
                        name="mail_consent_to_ask",
                    ),
                    models.Index(fields=["address", "asked_at"], name="mail_consent_of_address"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "address"), name="mail_consent_once"),
                    models.CheckConstraint(
                        condition=models.Q(("answer__in", ["", "yes", "no"])),
                        name="mail_consent_answer_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Seen",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.project"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "project"), name="seen_once")],
            },
        ),
    ]
