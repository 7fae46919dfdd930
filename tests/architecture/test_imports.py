"""Data walks down, imports point up: each package imports only packages that come before it."""

from __future__ import annotations

import sys

import pytest

from source_tree import Module, imports, modules, run_python

ORDER = (
    {"notation"},
    {"page", "text", "model"},
    {"generation", "training"},
    {"tracing"},
    {"interop", "laws"},
    {"serving", "book"},
    {"cli"},
)
"""Packages of one line do not import one another."""

EVERYWHERE = {"bilingual", "errors", "files", "__version__"}
"""Modules beside the packages that any of them may import."""

CORE = {
    "numpy",
    "torch",
    "tokenizers",
    "safetensors",
    "pydantic",
    "pydantic_core",
    "typer",
    "rich",
    "tomli_w",
    "zstandard",
}
"""The run-time dependencies of pyproject.toml; pydantic_core is the part of pydantic that has its errors."""

LIGHT = {
    "": set(),
    "notation": {"numpy"},
    "page": {"numpy"},
    "text": {"numpy", "tokenizers", "pydantic", "zstandard", "pyarrow"},
}
"""Packages that promise to need less than the core."""

TERMINAL = {"typer", "rich"}
"""Libraries of the command line alone."""

EXCEPTIONS = {
    "model/shapes.py": {"jaxtyping"},
    "laws/pytest_plugin.py": {"pytest"},
    "laws/subjects/architectures.py": {"transformers"},
    "laws/subjects/huggingface.py": {"transformers"},
    "laws/subjects/resolve.py": {"transformers"},
}
"""Modules that import something else where it is installed, and do without where it is not."""


def rank(package: str) -> int:
    return next(place for place, packages in enumerate(ORDER) if package in packages)


def inner_imports(module: Module) -> list[tuple[str, int]]:
    found = []
    for name, line in imports(module, at_run_time=True):
        parts = name.split(".")
        if parts[0] == "glassformer" and len(parts) > 1:
            found.append((parts[1], line))
    return found


def outer_imports(module: Module) -> list[tuple[str, int]]:
    roots = ((name.split(".")[0], line) for name, line in imports(module, at_run_time=True))
    return [(root, line) for root, line in roots if root != "glassformer" and root not in sys.stdlib_module_names]


def test_every_package_has_a_place_in_the_order() -> None:
    known = {"", *(package for packages in ORDER for package in packages)}
    assert {module.package for module in modules()} <= known


def test_a_package_imports_only_earlier_packages() -> None:
    wrong = [
        f"{module.name}:{line} imports {other}"
        for module in modules()
        if module.package  # the lazy table of __init__ is held by the tests of lightness below
        for other, line in inner_imports(module)
        if other not in EVERYWHERE and other != module.package and rank(other) >= rank(module.package)
    ]
    assert not wrong


def test_nothing_inside_imports_the_public_face() -> None:
    inner = [(module, name, line) for module in modules() for name, line in imports(module, at_run_time=False)]
    assert not [f"{module.name}:{line}" for module, name, line in inner if name == "glassformer"]


def test_only_declared_dependencies_are_imported() -> None:
    wrong = []
    for module in modules():
        allowed = LIGHT.get(module.package, CORE if module.package == "cli" else CORE - TERMINAL)
        allowed = allowed | EXCEPTIONS.get(module.name, set())
        wrong += [f"{module.name}:{line} imports {name}" for name, line in outer_imports(module) if name not in allowed]
    assert not wrong


def test_importing_glassformer_loads_no_dependency_and_no_part() -> None:
    loaded = run_python("import sys, glassformer; print(*sys.modules)").split()
    assert not [name for name in loaded if name.startswith("glassformer.")]
    assert not {name.split(".")[0] for name in loaded} & CORE


@pytest.mark.parametrize("package", ["notation", "page", "text"])
def test_a_light_package_loads_without_torch(package: str) -> None:
    assert "torch" not in run_python(f"import sys, glassformer.{package}; print(*sys.modules)").split()


def test_asking_for_help_loads_no_torch() -> None:
    code = (
        "import sys\n"
        "from glassformer.cli.main import main\n"
        "sys.argv = ['glassformer', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('torch' in sys.modules)"
    )
    assert run_python(code).split()[-1] == "False"
