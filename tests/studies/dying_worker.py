"""What a worker is told to do by the test of workers that die; a module that a new process finds by its name alone."""

import os
import signal
import struct


def die_while_sending(_what, _files, pipe):
    """Announce a message of 100,000 bytes, send ten of them, and be killed."""
    os.write(pipe.fileno(), struct.pack("!i", 100_000) + b"0123456789")
    os.kill(os.getpid(), signal.SIGKILL)


def echo(what, _files, _pipe):
    """Return what came."""
    return what
