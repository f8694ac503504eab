"""What the tests of the client share: servers of the full installation.

They also run where only sidelong-client and pytest are installed, for ``tests/test_client_package.py``. There,
tests with the mark `library` are left out.
"""

from service.servers import nursery, server, service

__all__ = ["nursery", "server", "service"]
