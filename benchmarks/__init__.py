"""Speed, memory and replay of the whole program, measured side by side in one run."""
