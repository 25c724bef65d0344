"""How kernels are compiled: one body at a time, and nothing that a join cannot reach.

A kernel that is called from Python is an entry point: machine code with a wrapper around it, which
is kept in the cache. Kernels that it calls are lowered to LLVM's intermediate code and no further,
for they are inlined or linked into the entry point and optimised there, once. Numba would make each
of them ready to be called from Python too: code for unpacking a `State`, optimised and assembled at
every level of calls, took most of the time.

Some kernels only ask for the type of a field (`asks_type`). Their calls become constants before
types are inferred, so what stands behind them is neither typed nor compiled: a join by a key has no
use for trees, one without limits none for shedding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba import _dynfunc, types
from numba.core import ir, registry
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import require_global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import IRProcessing

__all__ = ["Kernel", "TypeQuestion"]

_OPTIONS: Final = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False}


class TypeQuestion:
    """Whether a field of a kernel's first argument, a named tuple, is None. Types say so."""

    def __init__(self, field: str, is_none: bool) -> None:
        self._field = field
        self._is_none = is_none

    def answer(self, asked: Any) -> bool | None:
        """By the type of the argument; None if it is none of which this can be asked."""
        if not isinstance(asked, types.NamedTuple) or self._field not in asked.fields:
            return None
        field = asked.types[asked.fields.index(self._field)]
        return isinstance(field, types.NoneType) == self._is_none


class Kernel(registry.CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A function that is compiled when Python calls it, and lowered when kernels do."""

    def __init__(
        self, function: Callable[..., Any], inlined: bool, question: TypeQuestion | None = None
    ) -> None:
        super().__init__(function, targetoptions=dict(_OPTIONS), pipeline_class=_EntryCompiler)
        self.question = question
        self._inlined = inlined
        self._called: Any = None

    def keep_in(self, cache: Any) -> None:
        """Take compiled code from a cache of numba's interface, and leave it there."""
        self._cache = cache

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What numba asks for when another kernel calls this one."""
        if self._called is None:
            options = {
                **_OPTIONS,
                "forceinline": self._inlined,
                "no_cpython_wrapper": True,
                "no_cfunc_wrapper": True,
            }
            self._called = registry.CPUDispatcher(
                self.py_func, targetoptions=options, pipeline_class=_CalledCompiler
            )
        return self._called.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """The code that such a call leads to."""
        return self._called.get_overload(sig)


class _CalledLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """Intermediate code to be linked into other libraries. It never becomes machine code."""

    def finalize(self) -> None:
        require_global_compiler_lock()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _AnswerByType(FunctionPass):  # type: ignore[misc]  # numba has no types
    """Put constants for questions that types answer; the next pass prunes dead branches."""

    _name = "penstock_answer_by_type"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        function = state.func_ir
        found = False
        for block in function.blocks.values():
            for statement in block.find_insts(ir.Assign):
                answer = _answer(function, statement.value, state.args)
                if answer is not None:
                    constant = ir.Const(answer, statement.loc)
                    definitions = function._definitions[statement.target.name]
                    definitions[definitions.index(statement.value)] = constant
                    statement.value = constant
                    found = True
        return found


def _answer(function: Any, value: Any, arguments: Any) -> bool | None:
    if not (isinstance(value, ir.Expr) and value.op == "call" and len(value.args) == 1):
        return None
    called = guard(get_definition, function, value.func)
    asked = guard(get_definition, function, value.args[0])
    if not isinstance(called, ir.Global | ir.FreeVar) or not isinstance(asked, ir.Arg):
        return None
    question = getattr(called.value, "question", None)
    return question.answer(arguments[asked.index]) if question is not None else None


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]  # numba has no types
    """Lower a kernel for its callers: no wrappers, no machine code."""

    _name = "penstock_lowering"

    def run_pass(self, state: Any) -> bool:
        name = state.func_id.func_qualname
        state.library = _CalledLibrary(state.targetctx.codegen(), name)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        # Numba finds the code by this object, which must look like a compiled function.
        called = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,)
        )
        state.library.finalize()
        state.targetctx.insert_user_function(called, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=called)
        return True


class _EntryCompiler(CompilerBase):  # type: ignore[misc]  # numba has no types
    """Numba's own way, with questions answered first."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_AnswerByType, IRProcessing)
        passes.finalize()
        return [passes]


class _CalledCompiler(_EntryCompiler):
    """The same for a kernel that another one calls."""

    def define_pipelines(self) -> list[Any]:
        (passes,) = super().define_pipelines()
        passes.passes = [
            (_Lowering, "lowering for callers") if each is NativeLowering else (each, what)
            for each, what in passes.passes
        ]
        passes.finalize()
        return [passes]
