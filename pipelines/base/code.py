"""A digest of the code behind a table: a module and every module of the package that it imports, directly or not.

Imports are read from the source, also those inside functions; nothing is imported. Imports under TYPE_CHECKING do not
count. A module imported by a computed name is not found: its importer must pass that name to `code_digest` as well.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

# The folder that holds our package.
ROOT = Path(__file__).resolve().parents[2]
# Imports of our package as we write them (tests/architecture): by the whole name, on a line or in parentheses. Parsing
# all modules takes a second, this some milliseconds.
_IMPORT = re.compile(
    r"^[ \t]*(?:from (pipelines[\w.]*) import (?:\(([^)]*)\)|(.*))|import (pipelines[\w.]*))", re.MULTILINE
)
_OF_TYPES = re.compile(r"^if (?:typing\.)?TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)*", re.M)


@cache
def code_digest(*modules: str, root: Path = ROOT) -> str:
    """64 hex digits that change with the text of any module that `modules` reach; looked up once in a process."""
    seal = hashlib.sha256()
    for name, path in sorted(modules_reached(*modules, root=root).items()):
        seal.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return seal.hexdigest()


def modules_reached(*modules: str, root: Path = ROOT) -> dict[str, Path]:
    """The file of each module of ours that `modules` import, directly or not, by its name; they themselves included.

    Raises ModuleNotFoundError for one of `modules` that is not there.
    """
    reached: dict[str, Path] = {}
    met: set[str] = set()

    def visit(name: str) -> None:
        if name in met:
            return
        met.add(name)
        package = name.rpartition(".")[0]
        if package:
            visit(package)
            if package in reached and reached[package].name != "__init__.py":
                # Something that a module defines, such as a function.
                return
        # A folder without an __init__ has no code of its own.
        if path := _file(name, root):
            reached[name] = path
            for imported in imports_of(path.read_text(encoding="utf-8")):
                visit(imported)

    for name in modules:
        visit(name)
        if name not in reached:
            raise ModuleNotFoundError(f"{name} is not a module below {root}")
    return reached


def _file(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@cache
def imports_of(source: str) -> tuple[str, ...]:
    """What a module imports of our package; `from a import b` may mean the module a.b, so it counts as both."""
    found: dict[str, None] = {}
    for module, several, one, plain in _IMPORT.findall(_OF_TYPES.sub("", source)):
        found |= dict.fromkeys([module or plain, *(f"{module}.{name}" for name in re.findall(r"\w+", several or one))])
    return tuple(found)
