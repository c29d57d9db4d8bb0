"""What a shell needs to complete the command's words: a script, made from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

SHELLS = ("bash", "zsh")
_ZSH = "autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n"
# The first two words that are neither options nor their values are subject and verb. What has no choices is a file.
_SCRIPT = """_starling() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" path="" one skip="" choices=""
  for one in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [[ -n $skip ]]; then skip=""; continue; fi
    case "$one" in
      --url|--token|--project) skip=1 ;;
      -*) ;;
      *) case "$path" in "" | "${{path%% *}}") path="${{path:+$path }}$one" ;; esac ;;
    esac
  done
  case "$path $before" in
{values}
  esac
  if [[ -z $choices ]]; then
    case "$path" in
{words}
    esac
    if [[ $word != -* ]]; then
      case "$path" in
{subjects}
        *) choices="" ;;
      esac
    fi
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
}}
complete -o default -F _starling starling
"""


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for bash or zsh, to be evaluated there."""
    words, subjects, values = [], [], []
    for path, inner in _parsers(parser, ""):
        options = [
            name for action in inner._actions for name in action.option_strings if name.startswith("--")
        ]
        verbs = [name for action in inner._actions if _leads_on(action) for name in action.choices or ()]
        words.append(_case(path, options))
        if verbs:
            subjects.append(_case(path, verbs))
        for action in inner._actions:
            if action.choices and not _leads_on(action):
                for name in action.option_strings or [path.rpartition(" ")[2]]:
                    values.append(_case(f"{path} {name}", list(map(str, action.choices))))
    script = _SCRIPT.format(words="\n".join(words), subjects="\n".join(subjects), values="\n".join(values))
    return (_ZSH if shell == "zsh" else "") + script


def _leads_on(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _parsers(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser and all below it, by the words that lead there."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _parsers(inner, f"{path} {name}".strip())


def _case(path: str, words: list[str]) -> str:
    return f'      "{path}") choices="{" ".join(words)}" ;;'
