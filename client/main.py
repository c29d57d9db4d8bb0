"""The command line: words become a row of `COMMANDS`, the row a request, and the answer a table or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .commands import COMMANDS, Command, Option
from .completion import SHELLS, completion_script
from .execute import CommandRun
from .starling import Starling, StarlingError, __version__
from .tables import plain

_ENDS = """exit codes:
  0  done; with --watch and --wait: it ended well
  1  refused, and why
  2  the command line is not understood
  3  no answer, or an error of the server: it may work later
  4  the followed job or task did not end well, or was paused
"""
_FROM = "settings: STARLING_URL, STARLING_TOKEN, STARLING_PROJECT, or starling.json in $XDG_CONFIG_HOME (~/.config)"
_TYPES: dict[str, dict[str, Any]] = {
    "text": {},
    "whole": {"type": int},
    "number": {"type": float},
    "yes": {"action": "store_const", "const": True},
    "truth": {"choices": ("yes", "no")},
    "days": {"choices": ("7", "30", "90", "never")},
    "list": {},
    "wholes": {},
    "pairs": {"action": "append", "metavar": "PATH=VALUES"},
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns one of the exit codes that --help lists."""
    made = parser()
    parsed = made.parse_args(arguments)
    try:
        if parsed.subject == "completion":
            print(completion_script(made, parsed.shell), end="")
            return 0
        return CommandRun(Starling(parsed.url, parsed.token, parsed.project), parsed).run()
    except StarlingError as error:
        return _report(error, parsed.json)
    except BrokenPipeError:  # the reader of a pipe has closed it
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


def _report(error: StarlingError, as_json: bool) -> int:
    problem = error.problem
    if as_json:
        print(json.dumps(problem))
    print(plain(f"starling: {problem['what']}"), file=sys.stderr)
    sentences = [fault["sentence"] for fault in problem.get("errors", [])]
    for label, lines in (("why", sentences or [problem["why"]]), ("do", [problem["fix"]])):
        for line in lines:
            if line:
                print(plain(f"  {label:<4} {line}"), file=sys.stderr)
    status = int(problem.get("status") or 0)
    return 1 if 400 <= status < 500 else 3


def parser() -> argparse.ArgumentParser:
    """The parser of all rows, as subjects with verbs."""
    made = argparse.ArgumentParser(
        prog="starling",
        description="Jobs, money and policies of a Starling dashboard from the command line.",
        epilog=f"{_ENDS}\n{_FROM}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"starling {__version__}")
    _add_settings(made, "")
    subjects = made.add_subparsers(dest="subject", required=True, metavar="subject")
    verbs: dict[str, Any] = {}
    for row in COMMANDS:
        subject, *verb = row.name
        if not verb:
            _add(subjects, subject, row)
            continue
        if subject not in verbs:
            known = [command for command in COMMANDS if command.name[0] == subject]
            words = ", ".join(command.name[1] for command in known)
            group = subjects.add_parser(subject, help=words, description=f"{subject}: {words}")
            verbs[subject] = group.add_subparsers(dest="verb", required=True, metavar="verb")
        _add(verbs[subject], verb[0], row)
    completion = subjects.add_parser("completion", help="a script that completes these words in bash or zsh")
    completion.add_argument("shell", choices=SHELLS)
    return made


def _add_settings(to: argparse.ArgumentParser, default: str) -> None:
    """Options that may be written before the subject and after the verb. SUPPRESS: the first one is kept."""
    add = to.add_argument
    add("--url", default=default, help="of the dashboard (default: STARLING_URL, else the file's)")
    add(
        "--token",
        default=default,
        help="better in STARLING_TOKEN: others of this machine see a command's words",
    )
    add("--project", default=default, help="its slug (default: STARLING_PROJECT, else the first)")


def _add(to: Any, name: str, row: Command) -> None:
    made = to.add_parser(name, help=row.help, description=row.help, epilog=_FROM)
    made.set_defaults(row=row)
    for word in row.given:
        many = {"nargs": "+"} if word.endswith("...") else {}
        made.add_argument(word.rstrip(".").lower(), metavar=word.rstrip("."), **many)
    for option in row.options:
        made.add_argument(option.name, dest=option.to, help=option.words, **_kind(option))
    if row.sets or row.spec:
        words = "change what is sent, such as training.seed=7 or budget_usd=0.50; repeat it"
        made.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=words)
    if row.watches and row.name != ("jobs", "watch"):
        made.add_argument("--watch", action="store_true", help="follow it to its end")
    if row.waits:
        made.add_argument("--wait", action="store_true", help="until it is over")
    made.add_argument("--json", action="store_true", help="answers as JSON, a line each")
    _add_settings(made, argparse.SUPPRESS)


def _kind(option: Option) -> dict[str, Any]:
    return {**_TYPES[option.kind], **({"choices": option.choices} if option.choices else {})}


if __name__ == "__main__":
    sys.exit(main())
