"""What outlives a run: the journal, locks, and manifests that were changed for a build."""
