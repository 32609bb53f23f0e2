"""What the ecosystems do alike, once."""
