"""The commands of the command line, one small module per group."""
