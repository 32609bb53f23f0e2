"""Chores of this repository, never published."""
