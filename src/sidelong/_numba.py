"""All that is used of Numba beside its public names, and a check that it is there.

Numba makes machine code of every function that it meets, though a kernel that others call is copied into them. Here
such a kernel is kept as code of LLVM, without machine code and without a wrapper for Python; only what Python calls has
both. That saves two fifths of the time that the first simulation of a learner takes to compile.

Numba has no public way to say this, and a later Numba may have other parts. So nothing but `sidelong._jit` imports
this module, after `check`; and where the check fails, it does without.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import itertools
import pickle
import platform
import sys
import warnings
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import llvmlite
import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import _dynfunc, extending, types
from numba.core import caching, codegen, compiler, compiler_lock, imputils, registry, serialize
from numba.core.typing import templates
from numba.np import arrayobj

from sidelong._cache import CodeFiles, CodeKey, cache_folder, code_key
from sidelong._packed import Packed, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LAYOUT = 1  # goes up when code is kept in another way, so that what is on disk is compiled anew
_VERSIONS = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag, platform.machine(), _LAYOUT)
_OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    # A kernel allocates nothing, so that it needs no reference counts, which cost 190 ns a round at ten arms.
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into other libraries, and never run by itself."""

    def _optimize_final_module(self) -> None:
        # What it calls is copied into it, and no more: all is optimised where it has become a part of what is run. That
        # takes a fifth less time than to optimise at each step, and loops become vectors when all is known of them.
        passes, builder = self._codegen._module_pass_manager(  # noqa: SLF001
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        passes.run(self._final_module, builder)

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


class _PackedType(types.Type):  # type: ignore[misc]
    """The type of a `Packed`: the address of words that stand for a value of another type."""

    def __init__(self, value: Any) -> None:
        self.types = (value,)
        super().__init__(f"Packed({value})")

    @property
    def key(self) -> Any:
        return self.types


extending.register_model(_PackedType)(extending.models.OpaqueModel)


def typeof(value: object) -> Any:
    """Return the type of an argument."""
    return _PackedType(numba.typeof(value.value)) if isinstance(value, Packed) else numba.typeof(value)


@extending.unbox(_PackedType)  # type: ignore[untyped-decorator]
def _address(_type: Any, packed: Any, c: Any) -> Any:
    return extending.NativeValue(c.pyapi.long_as_voidptr(c.pyapi.tuple_getitem(packed, 1)))


@templates.infer_getattr
class _PackedAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    key = _PackedType

    def resolve_value(self, packed: _PackedType) -> Any:
        return packed.types[0]


@imputils.lower_getattr(_PackedType, "value")  # type: ignore[untyped-decorator]
def _value(context: Any, builder: Any, packed: _PackedType, address: Any) -> Any:
    first = builder.bitcast(address, ir.IntType(64).as_pointer())
    words = (builder.load(builder.gep(first, [ir.Constant(ir.IntType(64), k)])) for k in itertools.count())
    return _from_words(context, builder, packed.types[0], words)


def _from_words(context: Any, builder: Any, type_: Any, words: Iterator[Any]) -> Any:
    """Return the value that words stand for, as `_packed.pack` has written them, and take as many as it needs."""
    if isinstance(type_, types.BaseTuple):
        return context.make_tuple(builder, type_, [_from_words(context, builder, each, words) for each in type_.types])
    if isinstance(type_, types.Array):
        array = context.make_array(type_)(context, builder)
        data = builder.inttoptr(next(words), array.data.type)
        shape, strides = ([next(words) for _ in range(type_.ndim)] for _ in range(2))
        arrayobj.populate_array(array, data, shape, strides, arrayobj.get_itemsize(context, type_), None)
        return array._getvalue()  # noqa: SLF001
    if isinstance(type_, types.Float):
        number = builder.bitcast(next(words), ir.DoubleType())
        return context.cast(builder, number, types.float64, type_)
    return context.cast(builder, next(words), types.int64, type_)


class _Cache(caching.NullCache):  # type: ignore[misc]
    """What keeps the code of a function: what cannot be read or written is compiled anew.

    Numba's own cache is not used: the environment can move it to where an edit of another file is not seen, its index
    may name a file that is not written yet, and it does not notice a damaged one.
    """

    def __init__(self, code: CodeKey, files: Any) -> None:
        self._code = code
        self._files = files

    def locked(self) -> contextlib.AbstractContextManager[None]:
        return self._files.locked()  # type: ignore[no-any-return]

    def load_overload(self, signature: Any, target: Any) -> Any:
        with contextlib.suppress(Exception):  # a file that was made by something else raises anything
            if not self._code.own:
                # All that any code may call. It takes longer than to load Numba, and ours does not call it.
                target.refresh()
            key = self._key(signature, target.codegen())
            # Types of different classes may be written alike, so that the key itself has the last word.
            saved, data = pickle.loads(self._files.load(repr(key)))  # noqa: S301  # from a folder of the user's own
            return self._rebuild(target, data) if saved == key else None
        return None

    def contains(self, signature: Any, target: Any) -> bool:
        with contextlib.suppress(Exception):
            return bool(self._files.contains(repr(self._key(signature, target.codegen()))))
        return False

    def save_overload(self, signature: Any, result: Any) -> None:
        if result.library.has_dynamic_globals:
            self._refuse(result)
            return
        with contextlib.suppress(Exception):  # a full disk
            key = self._key(signature, result.codegen)
            self._files.save(repr(key), serialize.dumps((key, result._reduce())))  # noqa: SLF001

    def _key(self, signature: Any, generator: Any) -> tuple[Any, ...]:
        # A class of NamedTuples equals itself after its fields have changed places.
        fields = [*map(_fields, signature)]
        return signature, fields, generator.magic_tuple(), _VERSIONS, self._code.key

    def _rebuild(self, target: Any, data: Any) -> Any:
        return compiler.CompileResult._rebuild(target, *data)  # noqa: SLF001

    def _refuse(self, result: Any) -> None:
        name = result.fndesc.qualname
        warnings.warn(
            f"The machine code of {name} is not kept on disk, since it holds the address of a large array of its "
            "module: each process compiles it anew. Pass the array as an argument, or make it smaller than 1 MB.",
            stacklevel=2,
        )


def _fields(type_: Any) -> Any:
    """Return the names of the fields of the NamedTuples in a type."""
    return getattr(type_, "fields", ()), [*map(_fields, getattr(type_, "types", ()))]


class _PartCache(_Cache):
    def _rebuild(self, target: Any, data: Any) -> Any:
        (name, _, bitcode), description, environment, signature, *_ = data
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

    def _refuse(self, result: Any) -> None:
        pass  # what is made of it may well be kept


@contextlib.contextmanager
def _rarely_collected() -> Iterator[None]:
    """Let Python look for garbage less often.

    A compiler makes so many small things, most of which stay, that to look through them takes a tenth of its time.
    """
    with compiler_lock.global_compiler_lock:  # which it takes anyway: no other thread compiles meanwhile
        often, *others = gc.get_threshold()
        gc.set_threshold(often and max(often, 100_000), *others)  # 0 is never
        try:
            yield
        finally:
            gc.set_threshold(often, *others)


class _Dispatcher(registry.CPUDispatcher):  # type: ignore[misc]
    def compile(self, signature: Any) -> Any:
        if signature in self.overloads or not isinstance(self._cache, _Cache):
            return super().compile(signature)
        with self._cache.locked(), _rarely_collected():
            return super().compile(signature)

    def is_compiled(self, signature: tuple[Any, ...]) -> bool:
        """Tell whether it need not be compiled for this signature, since it is in memory or on disk."""
        cached = isinstance(self._cache, _Cache) and self._cache.contains(signature, self.targetctx)
        return signature in self.overloads or cached


class _Whole(_Dispatcher):
    """A function that Python calls."""

    def machine_code(self, signature: tuple[Any, ...]) -> Any:
        """Compile it if need be, and return what can be called with arguments of these types and no others."""
        self.compile(signature)
        return self.overloads[signature].entry_point

    def add_overload(self, result: Any) -> None:
        super().add_overload(result)
        # What a part needs of Python, to print for example, is set here, where the code is made that it is part of.
        for environment in result._find_referenced_environments():  # noqa: SLF001
            result.codegen.set_env(environment.env_name, environment)


def _named(function: FunctionType, code: CodeKey) -> FunctionType:
    """Return a function under a name that no other code has, for the compiler to name its machine code by.

    Numba tells functions of one name apart by numbers, which each process gives anew. Two that were compiled in two
    processes may have the same number, and a third process that loads both would run one of them in place of the other.
    """
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    functools.update_wrapper(made, function)
    made.__qualname__ = f"{function.__qualname__}_{code.key}"
    return made


class PartDispatcher(_Dispatcher):
    """A function that kernels call as a part of themselves, and Python as a whole.

    `whole` is the same function with machine code of its own, which is made when Python first calls it.
    """

    def __init__(
        self,
        function: Any,
        locals_: Any = None,
        options: Any = None,
        code: CodeKey | None = None,  # as pickle calls it
    ) -> None:
        super().__init__(function, locals_, options, pipeline_class=_Compiler)
        self.whole = _Whole(function, locals_, {**self.targetoptions, "forceinline": False})
        code = code_key(function) if code is None else code
        self._compiler.py_func = self.whole._compiler.py_func = _named(function, code)  # noqa: SLF001
        if (folder := cache_folder()) is not None:
            self._cache = _PartCache(code, CodeFiles(folder, function, "part"))
            self.whole._cache = _Cache(code, CodeFiles(folder, function, "whole"))  # noqa: SLF001

    @property
    def _numba_type_(self) -> _Type:
        return _Type(self)

    def add_overload(self, result: Any) -> None:
        self.overloads[tuple(result.signature.args)] = result  # where kernels look, and Python does not

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.whole(*arguments, **named)


def new_dispatcher(function: Any, code: CodeKey, *, inline: bool) -> PartDispatcher:
    """Return a function that is compiled when it is first called, and copied into kernels that call it if `inline`."""
    return PartDispatcher(function, None, {**_OPTIONS, "forceinline": inline}, code)


class _Pair(NamedTuple):
    numbers: np.ndarray
    factor: float
    size: int


def _product(packed: Packed, k: int) -> float:
    return packed.value.numbers[k] * packed.value.factor  # type: ignore[no-any-return]


def _two_kernels() -> tuple[PartDispatcher, PartDispatcher]:
    part = new_dispatcher(_product, code_key(_product), inline=True)

    def total(packed: Packed) -> float:
        s = 0.0
        for k in range(packed.value.size):
            s += part(packed, k)
        return s

    return part, new_dispatcher(total, code_key(total), inline=False)


class _InMemory(dict[str, bytes]):
    """What stands for the files of a function during the check."""

    locked, contains, load, save = contextlib.nullcontext, dict.__contains__, dict.__getitem__, dict.__setitem__


def check() -> None:
    """Compile a small kernel, keep it and load it, and raise an error if this Numba does not do that as expected.

    Where a folder for machine code can be written, this is done once for each version of Numba and of this file, in
    which docstrings and comments do not count.
    """
    folder = cache_folder()
    tree = ast.parse(Path(__file__).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    stamp = hashlib.sha256((repr(_VERSIONS) + ast.dump(tree)).encode()).hexdigest()[:16]
    mark = folder and folder / f"checked-{stamp}"
    if mark is not None and mark.exists():
        return
    pair = pack(_Pair(np.array([0.5, 0.25]), 3.0, 2))
    parts, wholes = _InMemory(), _InMemory()
    for store, hits in ((wholes, [0, 0]), (_InMemory(), [1, 0]), (wholes, [0, 1])):
        part, total = _two_kernels()
        code = code_key(total.py_func)
        part._cache, total.whole._cache = _PartCache(code, parts), _Cache(code, store)  # noqa: SLF001
        if total.whole.machine_code((typeof(pair),))(pair) != _product(pair, 0) + _product(pair, 1):
            raise RuntimeError("a kernel gives another number than plain Python")
        if [sum(each._cache_hits.values()) for each in (part, total.whole)] != hits:  # noqa: SLF001
            raise RuntimeError("what was compiled is not found again")
    if mark is not None:
        with contextlib.suppress(OSError):
            mark.touch()
