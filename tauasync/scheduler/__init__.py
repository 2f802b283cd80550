"""What decides which cell is played when, what may be spent, and when to stop."""
