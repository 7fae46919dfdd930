"""The pytest plugin: ``pytest --glassformer-check=mypackage.model:build`` adds one test for each probe of each law.

Loading it imports nothing but pytest; a suite that does not use the option is left alone. The check itself runs in a
process of its own when the first of its tests runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

OPTION = "--glassformer-check"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("glassformer", "laws that every correct Transformer keeps")
    group.addoption(
        OPTION, action="append", default=[], metavar="SUBJECT", dest="glassformer_check",
        help="check a model: what `glassformer check` takes, such as mypackage.model:build; may be given several times",
    )  # fmt: skip
    group.addoption(
        "--glassformer-fast", action="store_true", default=False, dest="glassformer_fast", help="few probes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker, so that these tests can be chosen or left out with ``-m laws``; only where they exist."""
    if config.getoption("glassformer_check"):
        config.addinivalue_line("markers", "laws: a probe of a law of glassformer, added by --glassformer-check")


@pytest.hookimpl(tryfirst=True)  # before -k and -m are applied
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the tests of each subject; nothing without the option."""
    for subject in config.getoption("glassformer_check") or ():
        items += Subject.from_parent(session, name=subject, path=config.rootpath, subject=subject).collect()


class Subject(pytest.Collector):
    """One subject; its report is made once, when it is first asked for."""

    def __init__(self, *, subject: str, **given: Any) -> None:
        super().__init__(**given)
        from .supervising import Order

        self.order = Order(subject=subject, fast=bool(self.config.getoption("glassformer_fast")))
        self._report: Mapping[str, Any] | None = None
        self._error: Exception | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each probe that subjects of its kind meet; one alone where the subject cannot be had."""
        from ..errors import UserError
        from .supervising import supervised

        try:
            probes = [entry["probe"] for entry in supervised(replace(self.order, listing=True))["laws"]]
        except UserError as error:
            self._error = error
            probes = ["unavailable"]
        for probe in probes:
            yield ProbeItem.from_parent(self, name=probe)

    def report(self) -> Mapping[str, Any]:
        """The report, strict JSON. Raises ``UserError`` for what cannot be checked."""
        from ..errors import UserError
        from .supervising import supervised

        if self._error is not None:
            raise self._error
        if self._report is None:
            try:
                self._report = supervised(self.order)
            except UserError as error:
                self._error = error
                raise
        return self._report


class ProbeItem(pytest.Item):
    """One probe on one subject: fails where the law is violated, is skipped where nothing was decided."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.add_marker(pytest.mark.laws)

    def runtest(self) -> None:
        """Read the verdict."""
        from . import reading

        parent = self.parent
        assert isinstance(parent, Subject)
        entry = next(entry for entry in parent.report()["laws"] if entry["probe"] == self.name)
        if entry["verdict"] == "violated":
            raise Violated(entry)
        if entry["verdict"] != "holds":
            pytest.skip(f"{entry['verdict']}: {reading.reason(entry, 'en')}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was measured, the witness, the place and the program; no traceback of ours."""
        from ..errors import UserError
        from . import reading

        error = excinfo.value
        if isinstance(error, UserError):
            return str(error)
        if not isinstance(error, Violated):
            return super().repr_failure(excinfo, style)
        entry = error.entry
        lines = [f"{entry['probe']} is violated: {reading.measured(entry, 'en')}", reading.reason(entry, "en")]
        lines += [reading.witness(entry, "en"), reading.place(entry, "en"), *reading.mask(entry)]
        lines += [entry.get("program") or ""]
        return "\n".join(line for line in lines if line)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The name under which the test is shown."""
        parent = self.parent
        assert parent is not None
        return self.path, None, f"{parent.name}::{self.name}"


class Violated(AssertionError):
    """A law is violated; ``entry`` is its place in the report."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        super().__init__(entry["probe"])
        self.entry = entry
