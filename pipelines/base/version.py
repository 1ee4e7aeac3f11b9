"""The version of the product; apart from the package itself, which every module's code reaches."""

from __future__ import annotations

__version__ = "0.2.0"
