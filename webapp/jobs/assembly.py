"""Where training and cloud meet: a spec and a ledger in, a platform that cannot spend around that ledger out."""

from cloud.metering import MeteredPlatform
from cloud.price_book import PriceBook
from training.ports import Ledger
from webapp.jobs.spec import JobSpec


def assemble(spec: JobSpec, ledger: Ledger) -> MeteredPlatform:
    """The spec's platform, opened, behind `ledger`. The caller closes it."""
    tariff = spec.platform.tariff(PriceBook.load(), spec.training.rollout.memory_mb)
    return MeteredPlatform(spec.platform.open(), ledger, tariff)
