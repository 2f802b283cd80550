"""Agents: what speaks for the company."""
