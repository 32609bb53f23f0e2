"""What follows publishing: tags of versions, and releases that people read."""
