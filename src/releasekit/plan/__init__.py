"""From a workspace to what there is to do."""
