"""Folders of the shipped files and of the user's cache."""

import os
import warnings
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def shipped(folder: str) -> Path:
    """Return a folder of shipped files: inside a wheel, or beside the sources.

    A wheel has ``results/reference`` as ``precbench/reference``.
    """
    inside = _PACKAGE / Path(folder).name
    if inside.is_dir():
        return inside
    return _PACKAGE.parent / folder


def config_names() -> list[str]:
    """Return the names of shipped configs, such as ``rudin2009/table-3-magic``."""
    folder = shipped("configs")
    names = []
    for path in folder.rglob("*.yaml"):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if not name.endswith(".published"):  # the claims of a config
            names.append(name)
    return sorted(names)


def cache_folder() -> Path:
    """Return ``$PRECBENCH_CACHE``, the user's cache, or ``./precbench-cache``."""
    configured = os.environ.get("PRECBENCH_CACHE")
    if configured:
        return Path(configured).expanduser()
    folder = _user_cache_folder()
    if folder is None:
        folder = Path("precbench-cache").absolute()
        warnings.warn(
            f"this user has no home folder, so the cache is {folder}; set"
            " PRECBENCH_CACHE to a folder of your choice",
            stacklevel=2,
        )
    return folder


def _user_cache_folder() -> Path | None:
    """Return the cache folder of this system; None if the user has no home folder."""
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("precbench")
    except RuntimeError:  # new versions of platformdirs raise
        return None
    if not folder.is_absolute():  # old versions return "~/.cache/precbench"
        return None
    return folder
