"""The decision service: ask and tell over HTTP, durable, for several programs at once."""
