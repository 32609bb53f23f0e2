"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure. Counterexamples are printed as code, so no database is kept.
settings.register_profile("releasekit", deadline=None, database=None, print_blob=True)
settings.load_profile("releasekit")

pytest_plugins = ["integration.fixtures"]
