"""The built page belongs to its sources, needs nothing and allows nothing."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def hook(root: Path) -> ModuleType:
    """``hatch_build.py``, loaded from where the build finds it."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", root / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_built_page_carries_the_stamp_of_its_sources(hook: ModuleType, root: Path, built: str) -> None:
    for page in hook.PAGES:
        assert hook.built_stamp(root / page) == hook.source_stamp(root / "web"), "web/ changed: run `make page`"


def test_every_source_counts_for_the_stamp(hook: ModuleType, root: Path, tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(root / "web", web, ignore=shutil.ignore_patterns("node_modules", "fixtures"))
    before = hook.source_stamp(web)
    (web / "tests" / "more.test.ts").write_text("// a test is no source of the page")
    assert hook.source_stamp(web) == before
    changed = {before}
    for path in ("src/new.ts", "src/main.tsx", "package-lock.json", "vite.config.ts", "build/plugins.ts"):
        with (web / path).open("a") as file:
            file.write("\n// changed")
        changed.add(hook.source_stamp(web))
    assert len(changed) == 6


def test_a_current_page_is_not_built_again(
    hook: ModuleType, built: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("it was built again"))
    hook.CustomBuildHook(str(root), {}, None, None, "", "wheel").initialize("standard", {})


class Told:
    """Where the hook's warnings go."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        self.warnings.append(message)


def test_without_npm_a_stale_page_is_an_error_and_an_editable_install_a_warning(
    hook: ModuleType, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root / "web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules", "fixtures"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    told = Told()
    build_hook = hook.CustomBuildHook(str(tmp_path), {}, None, None, "", "wheel", app=told)
    with pytest.raises(RuntimeError, match="npm"):
        build_hook.initialize("standard", {})
    build_hook.initialize("editable", {})
    assert "npm was not found" in told.warnings[0]


def test_an_archive_with_the_page_and_without_its_sources_is_enough(hook: ModuleType, tmp_path: Path) -> None:
    for page in hook.PAGES:
        assert not hook.is_current(tmp_path)
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text("<html>")
    assert hook.is_current(tmp_path)


def policy(built: str) -> dict[str, list[str]]:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', built)
    assert found is not None
    return {name: rest for name, *rest in (part.split() for part in found[1].split(";"))}


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def test_the_policy_lets_run_only_what_was_built(built: str) -> None:
    allowed = policy(built)
    scripts = re.findall(r"<script type=\"module\"[^>]*>(.*?)</script>", built, re.DOTALL)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", built, re.DOTALL)
    assert allowed["script-src"] == [digest(text) for text in scripts]
    assert allowed["style-src"] == [digest(text) for text in styles]
    assert allowed["default-src"] == ["'none'"]
    assert allowed["connect-src"] == ["'none'"]
    assert allowed["trusted-types"] == ["'none'"]
    assert allowed["require-trusted-types-for"] == ["'script'"]
    assert "unsafe" not in str(allowed)


def test_the_policy_comes_before_anything_it_governs(built: str) -> None:
    assert built.index("Content-Security-Policy") < min(
        built.index("<script"), built.index("<style"), built.index("<link")
    )


def test_nothing_is_loaded_from_outside(built: str) -> None:
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>|<!--.*?-->", "", built, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', markup)
    styles = "".join(re.findall(r"<style[^>]*>(.*?)</style>", built, re.DOTALL))
    assert not re.findall(r"url\(\s*[\"']?(?!data:|#)[^)]*\)|@import", styles)
    fonts = re.findall(r"url\(data:([a-z/+0-9-]+)", styles)
    assert fonts
    assert set(fonts) == {"font/woff2"}


def test_the_page_carries_the_licences_of_what_it_contains(built: str) -> None:
    notices = built[built.rindex("<!--") :]
    for words in ("katex", "Khan Academy", "preact", "Permission is hereby granted", "SIL Open Font License"):
        assert words in notices


def test_markup_is_never_made_from_text(root: Path) -> None:
    sinks = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|renderToString|\beval\(|new Function"
    )
    sources = [p for p in (root / "web" / "src").rglob("*") if p.suffix in (".ts", ".tsx")]
    assert sources
    assert not [f"{p.name}: {found[0]}" for p in sources if (found := sinks.search(p.read_text("utf-8")))]
