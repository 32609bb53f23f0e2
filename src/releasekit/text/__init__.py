"""Text made harmless, and streams and files of text."""
