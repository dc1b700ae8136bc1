"""The rivals of the event-structured surrogate, one file each."""
