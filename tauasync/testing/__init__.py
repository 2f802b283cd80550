"""What tests and authors of plug-ins build with."""
