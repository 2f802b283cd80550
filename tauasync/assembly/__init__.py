"""Where the parts are put together: configuration in, running sweep out."""
