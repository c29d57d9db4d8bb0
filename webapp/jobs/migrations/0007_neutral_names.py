from django.db import migrations

_NAMES = {
    "environment": "subject",
    "env_steps": "total_progress",
    "episode_return_mean": "training_score",
    "return_best": "best_training_score",
    "return_least": "worst_training_score",
    "evaluation_return_mean": "evaluated_score",
}


class Migration(migrations.Migration):
    """What every kind of training has is not named by reinforcement learning."""

    dependencies = [
        ("jobs", "0006_attempts_of_films"),
    ]

    operations = [migrations.RenameField("job", old, new) for old, new in _NAMES.items()]
