from django.apps import AppConfig
from django.conf import settings


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Every process of this installation knows the operator's environment packages; none is imported yet."""
        from training.environments import packages

        packages.enable(settings.STARLING_ENVIRONMENT_PACKAGES)
