"""Known data sets that users have as files of their own: MNIST, click logs and reviews, in their usual formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data.dataset import Table
from training.data.formats.click_logs import read_click_log
from training.data.formats.mnist import read_mnist
from training.data.formats.reviews import read_reviews


@dataclass(frozen=True)
class Format:
    """A format that `read` makes a table of, from one or more files. It raises BadTable, which names the file."""

    key: str
    title: str
    words: str
    read: Callable[[Sequence[Path]], Table]


FORMATS: dict[str, Format] = {
    format_.key: format_
    for format_ in (
        Format(
            "mnist",
            "MNIST (IDX)",
            "Pictures and labels as IDX files, also gzipped: one pair, or the pairs for training and testing. "
            "Fashion-MNIST and EMNIST have the same format.",
            read_mnist,
        ),
        Format(
            "click_log",
            "Criteo's click log",
            "One file with a row a line: clicked (0 or 1), 13 counts and 26 texts between tabs, also gzipped.",
            read_click_log,
        ),
        Format(
            "reviews",
            "Reviews",
            "One file with a label and a text a line (__label__2 It was good), two files with the negative and "
            "the positive texts (their names say which), or IMDB's aclImdb archive (.tar.gz).",
            read_reviews,
        ),
    )
}
