"""Where a project shows its releases to people, and what is said there."""
