"""An address counts once it is confirmed; access has epochs; people are invited.

People who are here already: whoever shares a project with somebody is who they say they are to the others there, and
so are the staff and whoever set the installation up. Their own address counts as confirmed. All others keep their
account and their own projects, and confirm the address on their account page before it counts anywhere else.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Count, Q


def confirm_those_known(apps, schema_editor):
    User = apps.get_model("accounts", "User")
    Membership = apps.get_model("accounts", "Membership")
    EmailAddress = apps.get_model("account", "EmailAddress")
    shared = Membership.objects.values("project_id").annotate(people=Count("pk")).filter(people__gt=1)
    in_them = Membership.objects.filter(project_id__in=shared.values("project_id"))
    known = {
        *in_them.values_list("user_id", flat=True),
        *User.objects.order_by("pk").values_list("pk", flat=True)[:1],
    }
    for user in User.objects.filter(Q(is_staff=True) | Q(is_superuser=True) | Q(pk__in=known)).order_by("pk"):
        email = user.email.lower()
        if EmailAddress.objects.filter(email=email, verified=True).exists():
            continue
        has_first = EmailAddress.objects.filter(user=user, primary=True).exists()
        row, _ = EmailAddress.objects.get_or_create(
            user=user, email=email, defaults={"primary": not has_first}
        )
        row.verified = True
        row.save(update_fields=["verified"])


class Migration(migrations.Migration):
    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("accounts", "0002_guide_put_away"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="user", name="user_email_any_case"),
        migrations.AlterField(
            model_name="user", name="email", field=models.EmailField(db_index=True, max_length=254)
        ),
        migrations.AddField(
            model_name="user", name="access_epoch", field=models.PositiveIntegerField(default=0)
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("editor", "Editor"), ("owner", "Owner")],
                        max_length=10,
                    ),
                ),
                ("secret_sha256", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["email"], name="invitation_of_address")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["project", "email"], name="one_invitation_an_address_and_project"
                    ),
                    models.CheckConstraint(
                        condition=Q(role__in=["viewer", "editor", "owner"]), name="invitation_role_is_known"
                    ),
                ],
            },
        ),
        migrations.RunPython(confirm_those_known, migrations.RunPython.noop),
    ]
