"""The grid: which cells a configuration means, in which order, and what they may take."""
