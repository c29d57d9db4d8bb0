"""Runs benchmarks and prints a line a figure; exit 1 when one does not hold."""

import importlib
import pkgutil
import sys

import benchmarks


def main(wanted: list[str]) -> int:
    """Run the named benchmarks, or all."""
    known = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"
    )
    if unknown := sorted(set(wanted) - set(known)):
        print(f"There is no benchmark {', '.join(unknown)}; there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    all_hold = True
    for name in wanted or known:
        for figure in importlib.import_module(f"benchmarks.{name}").measure():
            limit = "" if figure.at_most is None else f"(at most {figure.at_most:g})"
            verdict = "" if figure.holds else "  DOES NOT HOLD"
            print(
                f"{name:<12} {figure.what:<52} {figure.value:>10.2f} {figure.unit:<4} {limit}{verdict}",
                flush=True,
            )
            all_hold = all_hold and figure.holds
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
