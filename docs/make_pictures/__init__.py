"""Draws docs/pictures/: `make pictures`, or `python -m make_pictures` with docs/ on the path."""
