"""The configuration: schema, loading, overrides, and what decides results."""
