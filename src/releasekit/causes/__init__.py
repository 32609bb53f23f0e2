"""Finer classes of error, one for each cause that users look up."""
