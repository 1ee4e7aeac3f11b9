"""A digest of the code behind a table: a module and every module of the package that it imports, directly or not.

Imports are read from the source, also those inside functions; nothing is imported. Imports under TYPE_CHECKING do not
count. A module imported by a computed name is not found: its importer must pass that name to `code_digest` as well.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pipelines.base.parse_cache import keep, kept

# The folder that holds our package.
ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "pipelines"
# The part of the cache that has the imports of modules; those of older texts are dropped now and then.
_PART, _MOST_KEPT = "imports", 2000


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
            for imported in _imported(path.read_bytes()):
                visit(imported)

    for name in modules:
        visit(name)
        if name not in reached:
            raise ModuleNotFoundError(f"{name} is not a module below {root}")
    _keep_imports()
    return reached


def _file(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def _imported(source: bytes) -> list[str]:
    """What a module imports of our package; `from a import b` may mean the module a.b, so it counts as both."""
    seal = hashlib.sha256(source).hexdigest()
    if seal not in _imports():
        names = dict.fromkeys(name for name in _names([ast.parse(source)]) if name.split(".")[0] == _PACKAGE)
        _imports()[seal] = list(names)
    return _imports()[seal]


@cache
def _imports() -> dict[str, list[str]]:
    """What modules import, by the sha256 of their text."""
    return dict(kept(_PART, _parser()) or {})


def _keep_imports() -> None:
    if len(_imports()) > len(kept(_PART, _parser()) or {}):
        keep(_PART, _parser(), _imports() if len(_imports()) < _MOST_KEPT else {})


@cache
def _parser() -> str:
    """A digest of what reads the imports."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # We import by the whole name (tests/architecture), so `module` is never relative.
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _names(node.orelse)
        else:
            yield from _names(ast.iter_child_nodes(node))


def _is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))
