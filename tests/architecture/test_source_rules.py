"""Rules of the source that a reader would otherwise have to trust."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from source_tree import PACKAGE, ROOT, calls, committed_files, functions, imports, modules

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_PARAMETERS = 10


def hand_written(*suffixes: str) -> list[Path]:
    """Committed files with one of `suffixes`."""
    return [path for path in committed_files() if path.suffix in suffixes]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_every_file_is_small_enough_to_know() -> None:
    lines = {relative(p): p.read_text("utf-8").count("\n") for p in hand_written(".py", ".ts", ".tsx", ".css")}
    assert not {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_FILE}


def test_every_python_file_says_what_it_is_for() -> None:
    trees = {relative(path): ast.parse(path.read_text("utf-8")) for path in hand_written(".py")}
    assert not [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)]


def test_every_function_fits_on_one_screen() -> None:
    found = [(m, f) for m in modules() for f in functions(m)]
    assert not [f"{m.name}:{f.lineno} {f.name}" for m, f in found if length(f) > MOST_LINES_OF_A_FUNCTION]


def test_every_signature_can_be_read_at_once() -> None:
    # A command is the exception: its parameters are its options.
    found = [(m, f, f.args) for m in modules() if m.package != "cli" for f in functions(m)]
    assert not [
        f"{m.name}:{f.lineno} {f.name}"
        for m, f, args in found
        if len(args.posonlyargs + args.args + args.kwonlyargs) > MOST_PARAMETERS
    ]


def test_nothing_that_is_loaded_can_execute() -> None:
    forbidden = {"eval", "exec", "compile", "__import__", "torch.load", "torch.hub.load", "os.system", "np.load"}
    found = [f"{m.name}:{node.lineno} {name}" for m in modules() for name, node in calls(m) if name in forbidden]
    roots = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    found += [
        f"{m.name}:{line} {name}"
        for m in modules()
        for name, line in imports(m, at_run_time=False)
        if name.split(".")[0] in roots
    ]
    assert not found


def test_nothing_is_probed_for_with_hasattr() -> None:
    assert not [f"{m.name}:{node.lineno}" for m in modules() for name, node in calls(m) if name == "hasattr"]


def test_no_function_changes_a_global() -> None:
    found = [(m, node) for m in modules() for node in ast.walk(m.tree) if isinstance(node, ast.Global)]
    assert not [f"{m.name}:{node.lineno}" for m, node in found]


def test_importing_a_module_only_defines_things() -> None:
    """At the top of a file stand definitions, assignments and imports; no loop, no `with`, no bare call."""
    registering = re.compile(r"app\.(add_typer|command|callback)\b")
    wrong = [
        f"{m.name}:{node.lineno}"
        for m in modules()
        for node in m.tree.body
        if isinstance(node, ast.For | ast.While | ast.With | ast.Delete)
        or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and not registering.match(ast.unparse(node.value))
        )
    ]
    assert not wrong


ANY_SHAPE = {
    "model/inputs.py": None,  # refusing a wrong shape is its work
    "model/decoder.py": {"forward"},  # hands what it is given to model/inputs.py first
    "model/loss.py": {"_at_least_float32"},  # cell by cell
}
"""Where a tensor may come without axes: every function of the module, or those named."""


def bare_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Annotations of `function` that are a `Tensor` without axes, optional or not."""
    given = [a.annotation for a in function.args.posonlyargs + function.args.args + function.args.kwonlyargs]
    texts = [ast.unparse(a) for a in [*given, function.returns] if a is not None]
    return [text for text in texts if re.fullmatch(r"(torch\.)?Tensor( \| None)?", text)]


def test_every_tensor_that_a_model_part_takes_is_annotated_with_its_axes() -> None:
    """`Float[Tensor, "b n d"]`: tests execute it (executed_types.py), so it cannot rot like a comment."""
    bare = [(m, f) for m in modules() if m.package == "model" for f in functions(m) if bare_tensors(f)]
    assert not [
        f"{m.name}:{f.lineno} {f.name}"
        for m, f in bare
        if m.name not in ANY_SHAPE or f.name not in (ANY_SHAPE[m.name] or {f.name})
    ]


def test_the_package_declares_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
