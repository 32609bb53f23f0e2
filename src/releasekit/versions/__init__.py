"""Which versions the changes since the last release ask for."""
