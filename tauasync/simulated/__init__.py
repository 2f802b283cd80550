"""The embedded endpoint: an OpenAI-compatible server whose models play the tasks.

A dry run and a test double: what it scores says something about the harness, nothing about
any model.
"""

EMBEDDED_URL = "http://embedded/v1"
"""Base URL under which the app is mounted in-process."""
