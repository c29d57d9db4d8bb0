"""The app of schedulers."""

from django.apps import AppConfig


class SchedulersConfig(AppConfig):
    """Trained schedulers and their trainings."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.schedulers"

    def ready(self) -> None:
        """Forms and launches of jobs offer this app's schedulers."""
        from webapp.jobs.launch import project_choices  # imports models, which load after apps

        project_choices.register("schedulers", "webapp.schedulers.job_choice")
