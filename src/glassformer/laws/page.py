"""A report as one page: no script, nothing fetched, every word of the subject escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ..text.visible import visible
from . import reading
from .reading import Plain

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1b1b; --faint: #5c5c5c; --line: #d8d8d8; --box: #f5f5f5;
  --bad: #a3121b; --good: #17603a; --limit: #7a4b00; }
@media (prefers-color-scheme: dark) { :root { --ground: #14161a; --ink: #e8e8e8; --faint: #a5a9b0; --line: #3a3e45;
  --box: #1e2127; --bad: #ff8a8a; --good: #7fd6a3; --limit: #f0bd6b; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 0; } p { margin: .3rem 0; }
.faint { color: var(--faint); } table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid var(--line); padding: .35rem .6rem .35rem 0; text-align: left; vertical-align: top; }
pre { background: var(--box); padding: .6rem; overflow-x: auto; font-size: .85rem; }
.violated { color: var(--bad); font-weight: 600; } .holds { color: var(--good); } .documented { color: var(--limit); }
""".strip()

WORDS = {
    "en": {
        "title": "Laws", "probe": "probe", "verdict": "verdict", "measured": "measured", "forwards": "forward passes",
        "program": "a program that reproduces it", "facts": "what was found out", "mask": "who read whom",
    },
    "zh": {
        "title": "定律", "probe": "检验", "verdict": "结论", "measured": "测量", "forwards": "次前向",
        "program": "复现程序", "facts": "查明的事实", "mask": "谁读取谁",
    },
}  # fmt: skip


def page(reports: Sequence[Plain], lang: str) -> str:
    """The reports as HTML, in English or Chinese."""
    said = WORDS[lang]
    body = "\n".join(line for report in reports for line in _report(report, lang))
    return (
        f'<!doctype html>\n<html lang="{"zh-Hans" if lang == "zh" else "en"}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{said['title']}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _report(report: Plain, lang: str) -> Iterator[str]:
    said = WORDS[lang]
    yield f"<h1>{_text(reading.title(report, lang))}</h1>"
    yield f"<p>{_text(reading.counts(report, lang))} · {report['forwards']} {said['forwards']}</p>"
    for law, entries in reading.grouped(report):
        yield f"<h2>{_text(law)}</h2>"
        yield f'<p class="faint">{_text(reading.statement(report, law, lang))}</p>'
        heads = "".join(f'<th scope="col">{said[key]}</th>' for key in ("probe", "verdict", "measured"))
        yield f"<table>\n<tr>{heads}</tr>"
        for entry in entries:
            yield _row(entry, lang)
        yield "</table>"
    facts = "\n".join(f"{key}: {value}" for key, value in {**report["facts"], **report["versions"]}.items())
    yield f"<details><summary>{said['facts']}</summary><pre>{_text(facts, keep=chr(10))}</pre></details>"


def _row(entry: Plain, lang: str) -> str:
    verdict = entry["verdict"]
    cell = f'<td class="{escape(verdict.split()[0])}">{reading.VERDICTS[verdict][lang]}</td>'
    told = "".join(f"<p>{_text(line)}</p>" for line in _lines(entry, lang) if line)
    return f"<tr><td>{_text(entry['probe'])}</td>{cell}<td>{told}{_blocks(entry, lang)}</td></tr>"


def _lines(entry: Plain, lang: str) -> list[str]:
    lines = [reading.measured(entry, lang), reading.reason(entry, lang)]
    return lines if entry["verdict"] == "holds" else [*lines, reading.witness(entry, lang), reading.place(entry, lang)]


def _blocks(entry: Plain, lang: str) -> str:
    blocks = (("mask", "\n".join(reading.mask(entry))), ("program", entry.get("program") or ""))
    return "".join(
        f"<details><summary>{WORDS[lang][key]}</summary><pre>{_text(text, keep=chr(10))}</pre></details>"
        for key, text in blocks
        if text
    )


def _text(text: str, keep: str = "") -> str:
    return escape(visible(str(text), keep=keep))
