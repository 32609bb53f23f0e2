"""What is new in a version, as text for its release, and what its tag is called."""
