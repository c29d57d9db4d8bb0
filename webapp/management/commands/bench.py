"""`manage.py bench [NAME…] [--json]`: the figures Starling promises, measured here and now."""

import importlib
import json
import pkgutil
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Measures the figures Starling promises; without names all of them. Exit 1 when one does not hold."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument("--json", action="store_true", help="one JSON object at the end, nothing else")

    def handle(self, *, names: list[str], **options: Any) -> None:
        import benchmarks

        known = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))
        if unknown := sorted(set(names) - set(known)):
            raise CommandError(
                f"There is no benchmark {', '.join(unknown)}; there are: {', '.join(known)}.", returncode=2
            )
        results: dict[str, list[dict[str, Any]]] = {}
        all_hold = True
        for name in names or known:
            for figure in importlib.import_module(f"benchmarks.{name}").measure():
                all_hold = all_hold and figure.holds
                results.setdefault(name, []).append(figure.as_dict())
                if not options["json"]:
                    self._tell(name, figure)
        if options["json"]:
            self.stdout.write(json.dumps(results))
        if not all_hold:
            raise CommandError("Not every figure holds.", returncode=1)

    def _tell(self, name: str, figure: Any) -> None:
        limit = "" if figure.at_most is None else f"(at most {figure.at_most:g})"
        verdict = "" if figure.holds else "  DOES NOT HOLD"
        self.stdout.write(
            f"{name:<10} {figure.what:<60} {figure.value:>10.2f} {figure.unit:<4} {limit}{verdict}"
        )
        self.stdout.flush()
