"""Requests to registries, and as whom."""
