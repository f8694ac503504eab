"""Write the blocking client, which is the asynchronous one without `await`.

python scripts/blocking_client.py            # write src/sidelong/service/client/blocking.py
python scripts/blocking_client.py --check    # or say where it differs, as the tests do
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "sidelong" / "service" / "client"
SOURCE, TARGET = CLIENT / "asynchronous.py", CLIENT / "blocking.py"

#: What is searched for, and what takes its place.
REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"# blocking: ", ""),  # before what only the blocking client has
        (r"\basync (?=def|with|for)", ""),
        (r"\bawait ", ""),
        (r"AsyncIterator, Iterable,", "Iterable, Iterator,"),
        (r"\bAsync(?=[A-Z])", ""),
        (r"\b__a(?=iter__|enter__|exit__)", "__"),
        (r"\baclose\b", "close"),
        (r"\basyncio\b", "time"),
    )
)
DOCSTRING = '''"""The client that waits for each reply.

Generated from asynchronous.py by scripts/blocking_client.py: change that file, and run the script.
"""
'''


def blocking(source: str) -> str:
    """Return the source of the blocking client."""
    for pattern, replacement in REPLACEMENTS:
        source = pattern.sub(replacement, source)
    return DOCSTRING + source.partition('\n"""\n')[2]


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if the file differs")
    made = blocking(SOURCE.read_text("utf-8"))
    if not parser.parse_args().check:
        TARGET.write_text(made, "utf-8")
        return 0
    found = TARGET.read_text("utf-8")
    names = TARGET.name, f"{SOURCE.name} without await"
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(keepends=True), made.splitlines(keepends=True), *names))
    return int(found != made)


if __name__ == "__main__":
    sys.exit(main())
