"""The command `sidelong`, and what it says where the packages of the command line are missing."""

from __future__ import annotations

import importlib.util
import io
import sys

from sidelong._install import pip_install
from sidelong.errors import SidelongError


def main() -> None:
    """Run the command line."""
    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        print(  # noqa: T201  # there is no other way to speak yet
            f"sidelong: the command line needs {' and '.join(missing)}. {pip_install(*missing)}",
            file=sys.stderr,
        )
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a sign shows a question mark
    try:
        from sidelong.cli import app  # noqa: PLC0415  # after the check; it takes long enough to be interrupted

        app()
    except SidelongError as error:  # what was given is refused: one sentence, no traceback
        print(f"sidelong: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except OSError as error:  # such as a full disk
        print(f"sidelong: {error}.", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
