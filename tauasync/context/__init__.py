"""Counting and truncation of what a model is shown: pure functions."""
