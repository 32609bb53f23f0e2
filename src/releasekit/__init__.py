"""Publishes every package of a monorepo in dependency order, each version exactly once."""

__version__ = "1.0.0"
