"""What a maintainer does about a release that its registries hold back."""
