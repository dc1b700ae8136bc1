"""From a boundary to a deployed head."""
