"""A real server in a process of its own, on a port and a database of its own."""

import os
import subprocess
import sys
from contextlib import contextmanager

from sidelong.service.database import Database
from sidelong.service.tokens import Tokens


class Served:
    """A server that runs."""

    def __init__(self, url, database):
        self.url = url
        self.database = database

    def make_token(self, *scopes):
        """Make a token; from then on, within a second, the server demands one."""
        opened = Database(self.database, 5.0)
        try:
            return Tokens(opened).create("test", list(scopes))
        finally:
            opened.close()


@contextmanager
def serving(folder, **environment):
    """Run `sidelong serve` until the block ends."""
    database = f"sqlite:///{folder}/sidelong.db"
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sidelong", "serve", "--port", "0", "--database", database],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | environment,
        )
        try:
            line = next((line for line in process.stdout if line.startswith("sidelong serves ")), None)
            assert line is not None, (folder / "server.log").read_text()
            yield Served(line.split()[-1], database)
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()
