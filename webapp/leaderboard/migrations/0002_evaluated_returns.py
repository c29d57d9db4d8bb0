"""Results say what a run was judged by. Those of before are read again: they went by smoothed training returns."""

from django.db import migrations, models


def read_again(apps, schema_editor):
    apps.get_model("leaderboard", "GoalResult").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="goalresult", name="evaluated", field=models.BooleanField(default=False)
        ),
        migrations.RunPython(read_again, migrations.RunPython.noop),
    ]
