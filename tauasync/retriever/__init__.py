"""How an agent reaches the documents of a knowledge base: one plug-in a way."""
