"""The version of the product; apart from the package itself, which every module's code reaches."""

__version__ = "0.2.0"
