"""Git as the program speaks it: objects, remotes, and what history tells."""
