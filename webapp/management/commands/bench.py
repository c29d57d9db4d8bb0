"""`manage.py bench [NAME…] [--json]`: the figures Starling promises, measured here and now."""

import importlib
import inspect
import json
import pkgutil
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

import benchmarks
from rig.figures import NotSetUp
from webapp.management.command import LineCommand


class Command(LineCommand):
    help = "Measures the figures Starling promises; without names all of them. Exit 1 when one does not hold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument("--json", action="store_true", help="one JSON object at the end, nothing else")
        parser.add_argument(
            "--quick", action="store_true", help="shorter where that can be: looks, no figures"
        )

    def handle(self, *, names: list[str], **options: Any) -> None:
        known = sorted(
            module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg
        )
        if unknown := sorted(set(names) - set(known)):
            raise CommandError(
                f"There is no benchmark {', '.join(unknown)}; there are: {', '.join(known)}.", returncode=2
            )
        results: dict[str, list[dict[str, Any]]] = {}
        all_hold = True
        for name in names or known:
            try:
                for figure in _figures(name, quick=options["quick"]):
                    all_hold = all_hold and figure.holds
                    results.setdefault(name, []).append(figure.as_dict())
                    if not options["json"]:
                        self._tell(name, figure)
            except NotSetUp as error:
                raise CommandError(f"{name}: {error}", returncode=2) from None
        if options["json"]:
            self.stdout.write(json.dumps(results))
        if not all_hold:
            raise CommandError("Not every figure holds.", returncode=1)

    def _tell(self, name: str, figure: Any) -> None:
        limit = f"({figure.limit})" if figure.limit else ""
        verdict = "" if figure.holds else "  DOES NOT HOLD"
        self.tell(f"{name:<10} {figure.what:<60} {figure.value:>10.2f} {figure.unit:<4} {limit}{verdict}")


def _figures(name: str, *, quick: bool) -> Iterator[Any]:
    measure = importlib.import_module(f"benchmarks.{name}").measure
    shortens = "quick" in inspect.signature(measure).parameters
    figures: Iterator[Any] = measure(quick=quick) if shortens else measure()
    return figures
