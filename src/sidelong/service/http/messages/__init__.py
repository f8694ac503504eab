"""What is said over HTTP: the requests and the replies. ``docs/service.md`` has each by example."""
