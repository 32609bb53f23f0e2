"""A plan being carried out."""
