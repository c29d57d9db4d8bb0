"""The app of jobs."""

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from cloud.money.billing import price_book
from cloud.timing.numbers import profile, stack
from training.rl import packages


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Make the operator's environment packages, prices and measured profiles known; no package is imported yet."""

        try:
            price_book.set_operator_prices(settings.STARLING_PRICES)
        except price_book.PriceError as error:
            raise ImproperlyConfigured(
                f"STARLING_PRICES cannot be used. {error}. Correct that line, or leave the setting out."
            ) from None

        packages.enable(settings.STARLING_ENVIRONMENT_PACKAGES)
        for files in (profile.FILES, stack.FILES):
            files.add_folder(settings.STARLING_DATA / "profiles")
