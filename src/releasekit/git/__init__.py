"""What git knows: objects, a remote's tags, commits, and when a package got its version."""
