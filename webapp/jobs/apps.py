from django.apps import AppConfig
from django.conf import settings


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Every process of this installation knows the operator's environment packages, none of which is imported
        yet, and what was measured here."""
        from cloud.numbers import profile, stack
        from training.environments import packages

        packages.enable(settings.STARLING_ENVIRONMENT_PACKAGES)
        for files in (profile.FILES, stack.FILES):
            files.look_also_in(settings.STARLING_DATA / "profiles")
