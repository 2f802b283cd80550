"""Scoring: one module a check, and the product of those a task counts."""
