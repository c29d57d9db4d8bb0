"""How many places in the tests replace a function, class or method of ours by something else.

Such a test proves what its author thought of that function. A fault belongs where it happens: in the database, on
the disk, in a process that is killed, in an emulated cloud. Constants, such as limits and waits, may be set, and what
is not ours may be replaced.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from rig.servers import ROOT

OWN = ("training", "cloud", "webapp", "research")
MOST = 30


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each name that a file imports is called where it comes from."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update((one.asname, one.name) for one in node.names if one.asname)
            names.update((top := one.name.split(".")[0], top) for one in node.names if not one.asname)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
    return names


def dotted(expression: ast.expr, names: dict[str, str]) -> str | None:
    """Return the whole name that an expression of names and dots means, or None if it is no such expression."""
    if isinstance(expression, ast.Name):
        return names.get(expression.id)
    if isinstance(expression, ast.Attribute) and (owner := dotted(expression.value, names)):
        return f"{owner}.{expression.attr}"
    return None


def replaced_names(tree: ast.Module) -> Iterator[tuple[int, str | None]]:
    """The line of each replacement, and the whole name of what it replaces, or None where only a run could tell."""
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            target, *more = node.args
            if isinstance(target, ast.Constant):
                yield node.lineno, target.value
            elif more and isinstance(more[0], ast.Constant) and (owner := dotted(target, names)):
                yield node.lineno, f"{owner}.{more[0].value}"
            else:
                yield node.lineno, None
        elif isinstance(node, ast.Assign):
            owned = [dotted(one, names) for one in node.targets if isinstance(one, ast.Attribute)]
            yield from ((node.lineno, name) for name in owned if name)


def is_function_of_ours(name: str | None) -> bool:
    """Return True for a function, class or method of ours, for what cannot be resolved, and for a new attribute."""
    if name is None:
        return True
    if name.split(".")[0] not in OWN:
        return False
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return True
            found = getattr(found, part)
        return callable(found) and str(getattr(found, "__module__", "")).split(".")[0] in OWN
    return True


def own_functions_replaced(file: Path) -> Iterator[str]:
    """File, line and name of each replacement of something of ours."""
    text = file.read_text(encoding="utf-8")
    changed = "|".join(set(re.findall(r"^ +(?!self\.)(\w+)\.[\w.]+ = ", text, re.MULTILINE))) or "!"
    if "setattr" not in text and not re.search(
        rf"import .*\b({changed})\b|^    ({changed}),$", text, re.MULTILINE
    ):
        return  # as most: to parse all files takes seconds
    for line, name in replaced_names(ast.parse(text)):
        if is_function_of_ours(name):
            yield f"{file.relative_to(ROOT)}:{line} {name}"


def test_few_tests_replace_functions_of_ours() -> None:
    found = [one for file in sorted((ROOT / "tests").rglob("*.py")) for one in own_functions_replaced(file)]
    assert len(found) <= MOST, "use the real thing, with a fault where it happens:\n" + "\n".join(found)


def test_no_test_makes_mocks() -> None:
    makes = re.compile(r"unittest\.mock|from unittest import mock|\bmocker\b")
    texts = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")}
    assert [str(file) for file, text in texts.items() if makes.search(text) and file != Path(__file__)] == []


def test_the_counter_tells_functions_from_constants_and_ours_from_others() -> None:
    lines = [
        "from cloud.actor import wire",
        "import cloud.platforms.aws.weights as w",
        "patch.setattr(wire, 'pack_request', None)",
        "patch.setattr('webapp.jobs.services.submit_job', None)",
        "patch.setattr(w.AwsWeights, 'publish', None)",
        "patch.setattr('cloud.platforms.gateway.waiters.READ_EVERY_S', 1)",
        "patch.setattr('webapp.celery.app.send_task', None)",
        "patch.setattr('os.nice', None)",
        "patch.setattr(unknown, 'name', None)",
        "patch.setattr(wire, 'not_there', None, raising=False)",
        "wire.pack_request = None",
        "local.value = None",
    ]
    found = sorted(
        line for line, name in replaced_names(ast.parse("\n".join(lines))) if is_function_of_ours(name)
    )
    assert found == [3, 4, 5, 9, 10, 11]
