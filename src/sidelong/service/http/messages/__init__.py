"""What is said over HTTP: the requests and the replies. ``docs/http.md`` has each by example."""
