"""Models behind HTTP: wire format, limits, retry, cache, price, tokens."""
