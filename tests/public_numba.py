"""Import this before sidelong, to have it find no private name of Numba: what a Numba of the future may be like."""

import builtins

_import = builtins.__import__


def _public(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002  # the names are Python's
    top, _, rest = name.partition(".")
    private = top == "llvmlite" or (top == "numba" and (rest or any(each.startswith("_") for each in fromlist or ())))
    if private and (globals or {}).get("__name__", "").startswith("sidelong"):
        raise ImportError(f"there is no {name} any more")
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _public
