"""Where files come from: what is signed about them, by whom, and how others check it."""
