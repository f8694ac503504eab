"""What an agent alone has, and what to do instead with a family or one of its keys."""

from __future__ import annotations

_OF_AGENTS = "certificate", "lateness", "learn", "add_arm", "retire", "health", "graph_of_round"
_OF_FAMILIES = "save", "contents", "expire"

_MORE = {
    "add_arm": " If all keys get a new arm, begin a new family with the larger graph.",
    "retire": " If an arm is gone for a while, leave it out of available=... of each ask.",
}


def missing(what: object, name: str) -> AttributeError:
    """Return the error for an attribute that is not there."""
    kind = type(what).__name__
    if name in _OF_AGENTS:
        return AttributeError(
            f"A {kind} has no {name}, which an agent alone has. For a key that needs it, make an Agent with the seed "
            f"that family.seed_of(key) returns: it plays the same from its first round.{_MORE.get(name, '')}"
        )
    if name in _OF_FAMILIES:
        return AttributeError(f"A {kind} has no {name}: it keeps nothing of its own. Call {name} of its family.")
    return AttributeError(f"{kind!r} object has no attribute {name!r}")
