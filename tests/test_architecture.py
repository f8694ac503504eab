"""No two classes share a name. `make lint` checks which package may import which."""

import ast
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"


def test_no_two_classes_have_the_same_name():
    """Each learner has its Params and its State; elsewhere a name that is read means one thing."""
    parsed = [ast.parse(path.read_text("utf-8")) for path in SOURCES.rglob("*.py")]
    names = Counter(node.name for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1 and name not in {"Params", "State"}] == []
