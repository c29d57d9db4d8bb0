"""What changed since release 0.1.0: a token keeps its maker's access epoch. Earlier tokens count as made in the first one,
so some end here.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("gateway", "0002_token_ends_with_its_maker")]

    dependencies = [
        ("gateway", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("boxtoken", "access_epoch", models.PositiveIntegerField(default=0)),
        migrations.AlterField(
            "boxtoken",
            "made_by",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
