"""The rules of the house that import-linter cannot say."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from cloud.platforms.options import PLATFORMS
from rig.servers import printed_by

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("training", "cloud", "emulator", "client", "webapp", "research")

# A name that says nothing collects everything.
NAMELESS = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "managers", "base2", "stuff"}
PICKLES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}


def _sources(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        yield from sorted((ROOT / room).rglob("*.py"))


def _where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def _imports(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node


def _trees(*rooms: str, naming: Collection[str] = ("",)) -> Iterator[tuple[Path, ast.Module]]:
    """Parse the sources that have one of these words in them: most have none, and parsing all takes seconds."""
    for path in _sources(*rooms):
        text = path.read_text()
        if any(word in text for word in naming):
            yield path, ast.parse(text)


def test_every_file_and_folder_has_a_name_that_says_something() -> None:
    nameless = [
        str(path.relative_to(ROOT))
        for path in _sources(*ROOMS, "tests")
        if NAMELESS & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    ]
    assert not nameless


def test_a_project_and_a_user_have_their_types() -> None:
    loose = re.compile(r"\b(project|user): Any\b")
    sources = (path for path in _sources(*ROOMS, "benchmarks") if loose.search(path.read_text()))
    assert [str(path.relative_to(ROOT)) for path in sources] == []


LONG_TEMPLATE_LINES = 248
"""Only ever lower it: break a line between attributes, or between blocks."""


def test_no_more_lines_of_templates_are_longer_than_200_characters() -> None:
    templates = (ROOT / "templates").rglob("*.html")
    long = [line for path in templates for line in path.read_text("utf-8").splitlines() if len(line) > 200]
    assert len(long) <= LONG_TEMPLATE_LINES


def test_nothing_imports_pickle() -> None:
    culprits = [
        _where(path, node)
        for path, tree in _trees(*ROOMS, "tests", naming=PICKLES)
        for module, node in _imports(tree)
        if module.partition(".")[0] in PICKLES
    ]
    assert not culprits


def test_numpy_files_are_read_without_pickle() -> None:
    allowing = [
        _where(path, node)
        for path, tree in _trees(*ROOMS, naming=["allow_pickle"])
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and getattr(node.value, "value", None)
    ]
    assert not allowing


# On another machine there are no settings; the cloud speaks to a function through its environment, a puller's token is
# given to it there, and so is that of the client that people take away.
READERS_OF_THE_ENVIRONMENT = {
    ROOT / "webapp" / "variables.py",
    ROOT / "cloud" / "actor" / "handler.py",
    ROOT / "cloud" / "actor" / "puller.py",
    ROOT / "client" / "starling.py",
}


def test_only_the_settings_read_the_environment() -> None:
    """Others may write it for their children, which is a statement of its own: `os.environ[...] = ` or update()."""
    readers = [
        _where(path, node)
        for path, tree in _trees(*ROOMS, naming=["environ", "getenv"])
        if path not in READERS_OF_THE_ENVIRONMENT
        for node in ast.walk(tree)
        if _reads_environment(node)
    ]
    assert not readers


def _reads_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr="getenv"):
            return True
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="environ"), attr=attribute):
            return attribute not in {"setdefault", "update"}
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="os"), attr="environ"), ctx=ast.Load()):
            return True
        case ast.ImportFrom(module="os", names=names):
            return any(name.name in {"environ", "getenv"} for name in names)
    return False


def test_the_rooms_below_look_at_nothing_above() -> None:
    """Also said as import contracts; here, so that a single test run tells."""
    above = {"training": {"cloud", "webapp", "django"}, "cloud": {"webapp", "django"}}
    culprits = [
        _where(path, node)
        for room, forbidden in above.items()
        for path, tree in _trees(room, naming=forbidden)
        for module, node in _imports(tree)
        if module.partition(".")[0] in forbidden
    ]
    assert not culprits


def test_torch_is_loaded_only_by_those_who_compute_with_it() -> None:
    """It costs seconds and hundreds of megabytes. Files of tensor mathematics may import it, and no file imports those
    files as it loads: a function that needs them imports them itself."""
    at_load = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): set(_imported_at_load(tree))
        for path, tree in _trees(*ROOMS)
    }
    tensor_modules = {module for module, imported in at_load.items() if "torch" in imported}
    assert {module.partition(".")[0] for module in tensor_modules} <= {"training"}
    early = {module for module, imported in at_load.items() if imported & tensor_modules}
    assert early <= tensor_modules, "these would load torch wherever they are imported"


# Imports of our own inside functions, of all rooms. This number may only become smaller.
LATE_IMPORTS = 26
_LATE_IMPORT = re.compile(rf"^ +(?:from|import) (?:{'|'.join(ROOMS)})\b", re.MULTILINE)


def test_few_functions_import_what_is_ours_and_each_says_why() -> None:
    """An import in a function hides a circle, or saves time: its line has the reason as a comment."""
    late = [
        (path, node)
        for path in _sources(*ROOMS)
        if "migrations" not in path.parts and _LATE_IMPORT.search(path.read_text())
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for module, node in _imports(function)
        if module.partition(".")[0] in ROOMS
    ]
    silent = [
        _where(path, node)
        for path, node in late
        if "  # " not in path.read_text().splitlines()[getattr(node, "lineno", 1) - 1]
    ]
    assert not silent
    assert len(late) <= LATE_IMPORTS, "move what both need to a third place, and import at the file's head"


# What the engine is made of asks a task about all that is learned.
NEUTRAL = (
    *(
        f"engine/{name}.py"
        for name in ("train", "stopping", "deadlines", "replay", "ports", "seeds", "unfinished")
    ),
    *(
        f"loops/{name}.py"
        for name in ("synchronous", "pipelined", "asynchronous", "flight", "evaluation", "attempts")
    ),
    *(f"loops/{name}.py" for name in ("staleness_aware", "learners", "occupancy", "model")),
    *(f"tasks/{name}.py" for name in ("task", "training", "score", "kinds")),
)
# What is about reinforcement learning by nature: agents, their environments, and agents that scale trainings.
ABOUT_REINFORCEMENT = {
    "training": (
        *("rl", "scheduling", "spec.py", "tasks/reinforcement.py", "scaling/reward_ratio.py"),
        "engine/memory_needs.py",
        *(f"functions/{name}.py" for name in ("rollout", "evaluate", "fragment", "update")),
        *(f"calls/{name}.py" for name in ("rollout", "evaluate", "gradient", "update")),
    ),
    "cloud": (
        *("timing/calibration", "accounts/profiling_runs.py", "platforms/trajectory_cache.py"),
        "money/billing/paper_formulas.py",
    ),
    "webapp": (
        *(
            "comparing/goal_board.py",
            "comparing/goal_results.py",
            "comparing/models.py",
            "comparing/papers",
            "resources/profiling",
            "schedulers",
            "jobs/surfaces",
        ),
        *("jobs/launch/preflight.py", "jobs/launch/job_memory.py"),
        *(
            f"api/routes/{name}.py"
            for name in ("films", "papers", "profiles", "reward_surfaces", "schedulers")
        ),
        *(f"management/commands/{name}.py" for name in ("calibrate", "papers", "schedulers")),
        "management/commands/run-scheduler-training.py",
    ),
}
# Lambda runs functions in environments too, programs have variables of theirs, and the score of any kind of training is
# stored under the first kind's name.
_OF_OTHER_THINGS = re.compile('environmentVariables|"Environment"|environment variables?|episode_return_mean')
# How many other files of each room say a word of reinforcement learning. These numbers may only become smaller.
SAYING_WORDS_OF_REINFORCEMENT = {"training": 6, "cloud": 21, "webapp": 33}
_WORDS_OF_REINFORCEMENT = re.compile("environment|episode|rollout", re.IGNORECASE)


def test_the_engine_knows_no_word_of_reinforcement_learning() -> None:
    saying = [
        name for name in NEUTRAL if _WORDS_OF_REINFORCEMENT.search((ROOT / "training" / name).read_text())
    ]
    assert not saying, "these belong to every kind of training: ask the task"


def test_no_more_files_say_words_of_reinforcement_learning() -> None:
    """Migrations are as they were written."""
    saying = {}
    for room, own in ABOUT_REINFORCEMENT.items():
        about = {ROOT / room / name for name in own}
        assert all(path.exists() for path in about)
        saying[room] = sum(
            bool(_WORDS_OF_REINFORCEMENT.search(_OF_OTHER_THINGS.sub("", path.read_text())))
            for path in _sources(room)
            if "migrations" not in path.parts and not about & {path, *path.parents}
        )
    more = {room: count for room, count in saying.items() if count > SAYING_WORDS_OF_REINFORCEMENT[room]}
    assert not more, "what every kind of training has needs none of these words"


def _imported_at_load(tree: ast.Module) -> Iterator[str]:
    for statement in _run_on_import(tree.body):
        for module, node in _imports(statement):
            yield module
            yield module.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                yield from (f"{module}.{alias.name}" for alias in node.names)


def _run_on_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The import statements that run when the module is loaded; not those in functions, nor for type checkers."""
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                yield statement
            case ast.ClassDef(body=inner) | ast.With(body=inner):
                yield from _run_on_import(inner)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=otherwise):
                yield from _run_on_import(otherwise)
            case ast.If(body=inner, orelse=otherwise):
                yield from _run_on_import([*inner, *otherwise])
            case ast.Try(body=inner, handlers=handlers, orelse=otherwise, finalbody=last):
                handled = [line for handler in handlers for line in handler.body]
                yield from _run_on_import([*inner, *handled, *otherwise, *last])


def _app_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which app of webapp imports which, imports inside functions included; `sources` by module.

    A module directly below webapp counts as an app of its own.
    """
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        importer = _app_of(module)
        imported = graph.setdefault(importer, set())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                package = module.split(".")[: -node.level] if node.level else []
                origin = ".".join([*package, *([node.module] if node.module else [])])
                names = [f"{origin}.{alias.name}" for alias in node.names]
            else:
                continue
            imported |= {_app_of(name) for name in names if name.startswith("webapp.")} - {importer}
    return graph


def _app_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def _knots(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The groups of apps that import each other, directly or through others."""
    reached = {app: _reached_from(app, graph) for app in graph}
    groups = {frozenset(other for other in reached[app] if app in reached.get(other, ())) for app in graph}
    return [set(group) for group in groups if len(group) > 1]


def _reached_from(app: str, graph: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [app]
    while waiting:
        for imported in graph.get(waiting.pop(), set()) - found:
            found.add(imported)
            waiting.append(imported)
    return found


def test_the_apps_of_webapp_form_no_knot() -> None:
    """Also an import contract, which names the layers; this one knows nothing but the imports."""
    files = [path for path in _sources("webapp") if "migrations" not in path.parts]
    sources = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in files}
    graph = _app_graph(sources)
    mutual = [(app, other) for app in graph for other in graph[app] if app in graph.get(other, ())]
    assert len(graph) > 20
    assert not mutual
    assert not _knots(graph)


def test_a_knot_of_apps_is_found() -> None:
    sources = {
        "webapp.jobs.views": "from webapp.money.ledger import Ledger",
        "webapp.money.ledger": "import webapp.clock",
        "webapp.clock": "import time",
    }
    assert _app_graph(sources) == {"jobs": {"money"}, "money": {"clock"}, "clock": set()}
    assert not _knots(_app_graph(sources))
    sources["webapp.clock"] = "def now():\n    from . import jobs"
    assert _knots(_app_graph(sources)) == [{"jobs", "money", "clock"}]
    sources["webapp.clock"] = "import time"
    sources["webapp.money.ledger"] = "def pay():\n    import webapp.jobs.views"
    assert _knots(_app_graph(sources)) == [{"jobs", "money"}]


_LOAD_THE_WHOLE_WEB_PROCESS = """
import importlib, inspect, pkgutil, sys
import webapp.asgi
from django import forms
from django.urls import get_resolver

def every(patterns):
    for pattern in patterns:
        yield pattern
        yield from every(getattr(pattern, "url_patterns", []))

addresses = sum(1 for _ in every(get_resolver().url_patterns))
import webapp
for module in pkgutil.walk_packages(webapp.__path__, "webapp."):
    if module.name.rpartition(".")[2] in {"forms", "views", "queries", "services", "consumers", "feed", "spec"}:
        importlib.import_module(module.name)
built = []
for name, module in list(sys.modules.items()):
    if name.startswith("webapp.") and name.endswith(".forms"):
        for form in vars(module).values():
            if inspect.isclass(form) and issubclass(form, forms.BaseForm) and form.__module__ == name:
                try:
                    str(form())
                except TypeError:
                    pass  # needs a project or a person, and importing its fields is what counts here
                built.append(form.__name__)
from webapp.api import reference
assert reference.groups() and "JobSpec" in reference.models()  # the whole description of the API
assert addresses > 10, addresses
assert built, "no form was found"
absent = ("torch", "ray", "sklearn", "scipy", "pandas", "boto3", "botocore", "azure", "msal", "research")
print([name for name in absent if name in sys.modules])
"""


def test_the_web_process_never_loads_torch_ray_or_scikit_learn(tmp_path: Path) -> None:
    environment = {"STARLING_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    assert printed_by(_LOAD_THE_WHOLE_WEB_PROCESS, PATH="/usr/bin:/bin", **environment) == "[]"


def test_an_actor_runs_without_torch() -> None:
    """What a cold start loads: the bodies of calls, as the worker imports them."""
    program = "import sys, training.functions.rollout, training.rl.networks.inference; print('torch' in sys.modules)"
    assert printed_by(program) == "False"


_KIND_OF_A_LOOP = re.compile(
    r"isinstance\([^)]*\b(Synchronous|Pipelined|Asynchronous|StalenessAware|Hybrid|EPOCH_LOOPS)"
    r"|[=!]= \"(staleness_aware|pipelined|asynchronous|synchronous|hybrid|bulk_synchronous|fully_asynchronous)\""
)


def test_rooms_above_training_ask_a_loop_and_not_for_its_name() -> None:
    """A loop says itself what forecasts, bills and pages need: a new one is a file and a row."""
    asked = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in _sources("cloud", "webapp", "research")
        for line in path.read_text().splitlines()
        if _KIND_OF_A_LOOP.search(line)
    ]
    # Stored outcomes and arms of experiments have names alone.
    assert len(asked) <= 4, asked


# Rooms about one platform alone, and why. All others ask a platform's options (`cloud/platforms/model.py`), or its row
# in `webapp/jobs/launch/platforms.py`.
ABOUT_ONE_PLATFORM = {
    "webapp/jobs/machines.py",  # the page and the command of the user's own machines
    "webapp/resources/profiling/services.py",  # memory is measured on AWS Lambda
    "webapp/resources/late_reports.py",  # only AWS Lambda writes the log that is read
}


def test_no_room_asks_for_a_kind_of_platform() -> None:
    kinds = {options.__name__: kind for kind, options in PLATFORMS.items()}
    asking = {
        str(path.relative_to(ROOT))
        for path, tree in _trees("cloud", "webapp", "research", naming=(*kinds, "kind"))
        if ROOT / "cloud" / "platforms" not in path.parents
        for node in ast.walk(tree)
        if _asks_for_a_kind(node, kinds)
    }
    assert asking == ABOUT_ONE_PLATFORM


def _asks_for_a_kind(node: ast.AST, kinds: Mapping[str, str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
            return any(isinstance(one, ast.Name) and one.id in kinds for one in ast.walk(classes))
        case ast.Compare():
            strings = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
            return "platform" in ast.unparse(node) and bool(strings & set(kinds.values()))
        case ast.Attribute(value=ast.Call(func=ast.Name(id=name)), attr="kind"):
            return name in kinds
    return False
