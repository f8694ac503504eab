"""The endpoints of the service: what is said over HTTP, who may say it, and the replies."""
