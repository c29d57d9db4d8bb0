"""Where films are stored: a folder for each job, and in it a film and its first picture."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from training.film import still_of
from webapp.jobs.models import Film


def film_folder() -> Path:
    """Return the folder of all films, with a folder for each job."""
    return Path(settings.STARLING_DATA) / "films"


def film_path(film: Film, *, still: bool = False) -> Path:
    """Return the path of that film, or of its first picture."""
    path = film_folder() / film.file
    return still_of(path) if still else path


def remove_film_files(name: str) -> None:
    """Delete the film of that name, its first picture, and its job's folder if nothing else is in it."""
    path = film_folder() / name
    for file in (path, still_of(path)):
        file.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:  # other films are in it, or it is gone
        pass
