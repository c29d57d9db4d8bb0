"""The cloud in numbers that a platform's options mean for a forecast."""

from __future__ import annotations

from cloud.money.billing.price_book import PriceBook
from cloud.platforms.options import PlatformOptions
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.numbers import stack as stacks
from training.tasks.training import Training


def configuration_of(training: Training, options: PlatformOptions) -> Configuration:
    alike = options.alike
    return Configuration(
        options.forecast_profile(training),
        stacks.load(alike.stack),
        alike.setting(),
        options.tariff(PriceBook.load(), training.memory_mb),
        options.longest_start_s,
    )
