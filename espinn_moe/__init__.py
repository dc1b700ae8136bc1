"""The event-structured surrogate, and what is read off it."""
