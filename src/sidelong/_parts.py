"""Kernels that other kernels are made of.

Numba makes machine code of every function that it meets, though a kernel that others call is copied into them. Here
such a kernel is kept as optimised code of LLVM, without machine code and without a wrapper for Python; only what Python
calls has both. That takes a fifth of the time to compile the simulation loop.

Numba has no public way to say this. What is used of it: the library of a compiled function, the compiler class of a
dispatcher, and the file format of its cache.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from llvmlite import binding as llvm
from numba import _dynfunc, extending, types
from numba.core import caching, codegen, compiler, imputils, registry

from sidelong._cache import cache_folder, new_cache
from sidelong._fingerprint import fingerprint, is_own

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PartDispatcher"]


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into other libraries, and never run by itself."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        return self.serialize_using_bitcode()  # type: ignore[no-any-return]

    @classmethod
    def from_bitcode(cls, generator: Any, name: str, bitcode: bytes) -> _Library:
        library = cls(generator, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


def _handle(description: Any, environment: Any, library: _Library) -> Any:
    """Return what stands for the function where Numba looks it up; it cannot be called."""
    return _dynfunc.make_function(description.lookup_module(), description.qualname, "", 0, environment, (library,))


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.library = _Library(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        self.state.flags.no_cpython_wrapper = True
        result = super().compile_extra(function)
        part = result._replace(entry_point=_handle(result.fndesc, result.environment, result.library))
        part.target_context.insert_user_function(part.entry_point, part.fndesc, [part.library])
        return part


class _Type(types.Dispatcher):  # type: ignore[misc]
    """The type of a part where a kernel names it."""


extending.register_model(_Type)(extending.models.OpaqueModel)


@imputils.lower_constant(_Type)  # type: ignore[untyped-decorator]
def _nothing(context: Any, *_: Any) -> Any:
    # Numba would put the address of the dispatcher, which nobody needs, and code with addresses cannot be kept.
    return context.get_dummy_value()


class _PartCache(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """How such code is kept on disk."""

    def check_cachable(self, result: Any) -> bool:
        return not result.library.has_dynamic_globals  # without a warning: what is made of it may well be kept

    def rebuild(self, target: Any, payload: tuple[Any, ...]) -> Any:
        (name, _, bitcode), description, environment, signature, *_ = payload
        library = _Library.from_bitcode(target.codegen(), name, bitcode)
        return compiler.compile_result(
            typing_context=target.typing_context,
            target_context=target,
            library=library,
            environment=environment,
            entry_point=_handle(description, environment, library),
            fndesc=description,
            signature=signature,
            objectmode=False,
            lifted=(),
        )


class _Whole(registry.CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def add_overload(self, result: Any) -> None:
        super().add_overload(result)
        # What a part needs of Python, to print for example, is set here, where the code is made that it is part of.
        for environment in result._find_referenced_environments():  # noqa: SLF001
            result.codegen.set_env(environment.env_name, environment)


class PartDispatcher(registry.CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call as a part of themselves, and Python as a whole.

    `whole` is the same function with machine code of its own, which is made when Python first calls it.
    """

    def __init__(
        self, function: Callable[..., Any], locals_: dict[str, Any] | None = None, options: dict[str, Any] | None = None
    ) -> None:
        super().__init__(function, locals_, options, pipeline_class=_Compiler)
        self._fingerprint = ""
        self._new_whole()

    def _new_whole(self) -> None:
        self.entries: dict[Any, Any] = {}  # machine code that is ready to be called, by what it is called with
        self.whole = _Whole(self.py_func, self.locals, {**self.targetoptions, "forceinline": False})
        if cache_folder() is not None:
            self._cache = new_cache(self.py_func, "part", _PartCache)
            self.whole._cache = new_cache(  # noqa: SLF001
                self.py_func, "whole", caching.CompileResultCacheImpl
            )

    def compile(self, signature: Any) -> Any:
        self.forget_old_code()
        return super().compile(signature)

    def forget_old_code(self) -> None:
        """Forget what was compiled, if a number or a function that went into it has been changed since."""
        now = "" if is_own(self.py_func) else fingerprint(self.py_func)
        if self._fingerprint not in {"", now}:
            self.overloads.clear()
            self._new_whole()
        self._fingerprint = now

    @property
    def _numba_type_(self) -> _Type:
        return _Type(self)

    def add_overload(self, result: Any) -> None:
        self.overloads[tuple(result.signature.args)] = result  # where kernels look, and Python does not

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.whole(*arguments, **named)

    def __reduce__(self) -> Any:
        # By name where there is one, so that another process has this function and not a copy; a script has none there.
        module = sys.modules.get(self.__module__)
        if self.__module__ != "__main__" and getattr(module, self.__qualname__, None) is self:
            return self.__qualname__
        return super().__reduce__()
