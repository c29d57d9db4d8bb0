"""Every token ends, lines outlive their tokens, and a new password ends what was made under the old one.

Tokens that never ended get 90 days from now; their page says so.
"""

from datetime import timedelta

import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone


def end_tokens_and_sign_lines(apps, schema_editor):
    ApiToken, Deed = apps.get_model("api", "ApiToken"), apps.get_model("api", "Deed")
    ApiToken.objects.filter(expires_at=None).update(expires_at=timezone.now() + timedelta(days=90))
    for token in ApiToken.objects.select_related("user").iterator():
        lines = Deed.objects.filter(token=token)
        lines.update(token_name=f"{token.name} ({token.pk})", person=token.user.email)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_confirmed_addresses"),
        ("api", "0002_made_once"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken", name="access_epoch", field=models.PositiveIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="deed",
            name="token_name",
            field=models.CharField(default="", max_length=90),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="deed",
            name="person",
            field=models.CharField(default="", max_length=254),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="deed",
            name="token",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="deeds",
                to="api.apitoken",
            ),
        ),
        migrations.RunPython(end_tokens_and_sign_lines, migrations.RunPython.noop),
    ]
