"""The version of tf2verify; `pyproject.toml` reads it from here."""

VERSION = '0.1.0'
