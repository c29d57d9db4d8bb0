"""`manage.py forecast PRESET|FILE`: a job's forecast time and cost. Nothing is trained, rented or written."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from cloud.timing.forecast import NoForecast
from webapp.jobs.form.spec_documents import SpecError, add_spec_arguments, read_spec
from webapp.jobs.launch.forecast_panel import headline, panel
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.services import limits
from webapp.management.command import LineCommand


class Command(LineCommand):
    help = "Tells what a job would take and cost, with what that assumes. Nothing is trained."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_spec_arguments(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            spec = read_spec(options["spec"], options["changes"], limits())
            result = forecast_of(spec)
        except (SpecError, NoForecast) as error:
            self.refuse(str(error))
        if options["as_json"]:
            self.stdout.write(json.dumps(asdict(result)))
            return
        self.stdout.write(headline(result, spec) + (" (simulated)" if result.simulated else ""))
        shown = panel(spec)
        if "refusal" not in shown:
            self._write(shown)

    def _write(self, shown: dict[str, Any]) -> None:
        if shown["note"]:
            self.stdout.write(shown["note"])
        if shown["machine"]:
            self.stdout.write(shown["machine"])
        for title, figure in (*shown["parts"], *shown["figures"]):
            self.stdout.write(f"  {title:<14}{figure!s:>32}")
        for title, figure in shown["matters"]:
            self.stdout.write(f"  {title} matters: {figure} over its range")
        for sentence in shown["forecast"].assumptions:
            self.stdout.write(f"- {sentence}")
