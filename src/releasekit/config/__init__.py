"""From what the user wrote to one frozen Config."""
