"""What is said about a version: its tag, and the text of its release."""
