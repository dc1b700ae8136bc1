"""What happens to the grid, and the truth about it."""
