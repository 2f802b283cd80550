"""One conversation: the protocol as a pure transition, and the driver around it."""
