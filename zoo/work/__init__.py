"""Where and how many tasks run."""
