"""The machines and regions in which a job can learn on the simulated cloud, with their price an hour.

Only those with a price in the price book are offered.
"""

from __future__ import annotations

from functools import cache

from cloud.money.billing.price_book import PICODOLLARS_PER_USD, PriceBook, PriceError, UnknownSku
from cloud.money.billing.price_parts import MB_PER_GB
from cloud.money.pricing import FunctionPrice, PricedPart, RunningPrice, Tariff
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from training.loops.staleness_aware import StalenessAware
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.spec import JobSpec

_HOUR_NS = 3600 * 10**9
_USUAL_MB = 1024


def learners() -> list[Named]:
    return [
        Named(
            "server",
            "A machine",
            "Rented from the job's start to its end, whether it learns or waits.",
        ),
        Named(
            "function",
            "A function",
            "Paid only while it learns, by the second, at the price of the machine below.",
        ),
    ]


@cache
def machines_for_rent() -> list[Named]:
    """Return every machine with a price: the defaults of the cloud profiles first, then cheapest first."""
    known = machines.load()
    priced = [
        (row.usd, row.sku, row.region)
        for row in PriceBook.load().rows()
        if row.unit == "h" and row.usd is not None and row.sku.removesuffix(".spot") in known
    ]
    return [
        Named("", "The cloud profile's default", "The check-list says which that is, and its price."),
        *(
            Named(sku, f"{sku} – ${price.normalize():f} an hour", _machine(sku, region))
            for price, sku, region in sorted(priced)
        ),
    ]


def _machine(sku: str, region: str) -> str:
    machine = machines.load()[sku.removesuffix(".spot")]
    gpus = f", {machine.gpus} × {machine.gpu}" if machine.gpus else ""
    spot = " Spot: the cloud may take it back." if sku.endswith(".spot") else ""
    return f"{machine.vcpu} vCPU, {machine.memory_gb:g} GB{gpus}; priced in {region}.{spot}"


@cache
def regions() -> list[Named]:
    """Return every region with a price. Which cloud has none there, the form says after the choice."""
    usual = sorted({profiles.load(name).region for name in profiles.names()})
    priced = {row.region for row in PriceBook.load().rows()} - {"paper"}
    own = Named(
        "", "The cloud profile's default", f"{' or '.join(usual)}: everything it needs has a price there."
    )
    return [own, *(Named(region, region, _priced_words(region)) for region in sorted(priced))]


def _priced_words(region: str) -> str:
    """Return which simulated clouds have prices in this region."""
    priced = [name for name in profiles.names() if _all_priced(name, region)]
    if priced:
        return f"Everything has a price here on {', '.join(priced)}."
    return "Not everything that a job buys has a price here: the check-list says what is missing."


def _all_priced(profile: str, region: str) -> bool:
    try:
        SimulatedOptions(profile=profile, region=region).tariff(PriceBook.load(), _USUAL_MB)
    except (UnknownSku, PriceError):
        return False
    return True


def learner_words(spec: JobSpec) -> str:
    """Return where this job learns and what that costs an hour."""
    try:
        tariff = spec.platform.tariff(PriceBook.load(), spec.training.memory_mb)
    except (UnknownSku, PriceError) as error:
        return f"{str(error)[:1].upper()}{str(error)[1:]}."
    words = _machine_words(spec, tariff)
    loop = spec.training.loop.gradients
    return words if loop is None else _with_gradients(spec, loop, tariff, words)


def learner_price_words(spec: JobSpec) -> str:
    """Return what one of several learners costs; empty where that is not known or learners are not several."""
    loop = spec.training.loop.gradients
    if loop is None:
        return ""
    try:
        tariff = spec.platform.tariff(PriceBook.load(), spec.training.memory_mb)
    except (UnknownSku, PriceError):
        return ""
    hourly = _hourly_of_one(spec, loop, tariff)
    if hourly:
        return f"Each costs {hourly} an hour while it computes, and nothing while it waits."
    return "Their machine costs the same however many learn."


def _hourly_of_one(spec: JobSpec, loop: StalenessAware, tariff: Tariff) -> str:
    """Return the price of an hour of one function that computes gradients; empty if those are paid by machine."""
    price = tariff.actor if loop.where == "actor" else tariff.learner
    if isinstance(price, FunctionPrice):
        size = PricedPart(price.duration, spec.training.memory_mb, MB_PER_GB)
        return _hourly((size,))
    return _hourly(price.parts) if isinstance(price, RunningPrice) else ""


def _with_gradients(spec: JobSpec, loop: StalenessAware, tariff: Tariff, words: str) -> str:
    """Return where gradients are computed and what that costs. `words` say the same of what makes versions of them."""
    if loop.where == "learner":
        at_once = getattr(spec.platform, "learner_lanes", loop.learners)
        in_turn = f"{words} Learners take turns: {at_once:,} of {loop.learners:,} at once."
        return in_turn if at_once < loop.learners else words
    hourly = _hourly_of_one(spec, loop, tariff)
    many = f"at most {loop.learners:,}"
    where = (
        f"in functions at {hourly} an hour each, {many}, paid only while they compute"
        if hourly
        else f"on the actors' places, {many}, at no price of their own"
    )
    return f"Gradients: {where}. Versions: {words[0].lower()}{words[1:]}"


def _machine_words(spec: JobSpec, tariff: Tariff) -> str:
    rents = [rent for rent in tariff.rents if rent.resource == "learner"]
    if spec.simulated:
        return _simulated(spec, tariff, [part for rent in rents for part in rent.parts])
    if rents:
        return f"Here, on this installation, at {_hourly(rents[0].parts)} an hour from start to end, as you set it."
    return "Here, on this installation, at $0 an hour: your own machine costs nothing unless you set a price."


def _simulated(spec: JobSpec, tariff: Tariff, parts: list[PricedPart]) -> str:
    machine = getattr(spec.platform, "machine", "")
    if parts:
        return f"On a {machine} at {_hourly(tuple(parts))} an hour from start to end, busy or not."
    own = getattr(tariff.learner, "parts", ())
    return (
        f"In a function at {_hourly(own)} an hour, paid only while it learns." if own else "With the actors."
    )


def _hourly(parts: tuple[PricedPart, ...]) -> str:
    """Return the sum of prices paid at the same time."""
    picodollars = sum(part.line(_HOUR_NS).picodollars for part in parts)
    return f"${float(f'{picodollars / PICODOLLARS_PER_USD:.3g}'):g}"
