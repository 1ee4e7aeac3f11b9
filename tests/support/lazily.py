"""Modules that are loaded when a test first uses them: each worker collects all files, and runs few of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Lazily:
    """Stands for the module of this name."""

    module: str

    def __getattr__(self, name: str) -> Any:
        # pytest asks everything in a test file for such names.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(import_module(self.module), name)
