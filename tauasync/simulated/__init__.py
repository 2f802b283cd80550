"""The embedded endpoint: an OpenAI-compatible server whose models play the tasks.

A dry run and a test double: what it scores says something about the harness, nothing about
any model.
"""

BASE_PATH = "/v1"
"""Path of the API below the server's address."""

EMBEDDED_URL = f"http://embedded{BASE_PATH}"
"""Base URL under which the app is mounted in-process."""
