"""Reports of ``glassformer check`` and the table of ``glassformer laws``, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..laws import reading
from ..text.visible import visible

if TYPE_CHECKING:
    from ..laws.law import Law
    from ..laws.reading import Plain

WORDS = {
    "en": {
        "forwards": "forward passes: {n}", "nothing": "No law could be tried: {reason}.", "placing": "; {n} more to find where",
        "holds": "holds", "conditions": "conditions", "why": "why it matters",
        "chapter": "chapter of the notes", "formula": "formula", "probes": "probes", "more": "glassformer laws LAW tells more",
        "control": "to see it again, in Python without glassformer: --json or --html writes the program",
    },
    "zh": {
        "forwards": "前向次数：{n}", "nothing": "没有一条定律可以检验：{reason}。", "placing": "；另有 {n} 次用于定位",
        "holds": "成立", "conditions": "条件", "why": "为什么重要",
        "chapter": "笔记章节", "formula": "公式", "probes": "检验", "more": "glassformer laws LAW 给出更多",
        "control": "不依赖 glassformer 的复现程序：由 --json 或 --html 写出",
    },
}  # fmt: skip


def lines(report: Plain, lang: str) -> Iterator[str]:
    """The report by law; each probe with its verdict, what was measured or why not, and the witness of a violation."""
    yield reading.title(report, lang)
    width = max((len(entry["probe"]) for entry in report["laws"]), default=0)
    reasons = {reading.reason(entry, lang) for entry in report["laws"] if entry["verdict"] == "not supported"}
    if len(reasons) == 1 and len(report["laws"]) == report["verdicts"].get("not supported", 0) > 1:
        yield ""
        yield WORDS[lang]["nothing"].format(reason=reasons.pop())
        yield reading.counts(report, lang)
        return
    for law, entries in reading.grouped(report):
        yield ""
        yield f"{law}: {reading.statement(report, law, lang)}"
        for entry in entries:
            yield from _entry(entry, width, lang)
    yield ""
    yield reading.counts(report, lang)
    if any(entry.get("program") for entry in report["laws"]):
        yield WORDS[lang]["control"]
    placing = report.get("placing", 0)
    more = WORDS[lang]["placing"].format(n=placing) if placing else ""
    yield WORDS[lang]["forwards"].format(n=report["forwards"]) + more


def _entry(entry: Plain, width: int, lang: str) -> Iterator[str]:
    verdict = reading.VERDICTS[entry["verdict"]][lang]
    said = [part for part in (reading.measured(entry, lang), reading.reason(entry, lang)) if part]
    yield f"  {visible(entry['probe'], keep='').ljust(width)}  {verdict}{': ' * bool(said)}{'; '.join(said)}"
    if entry["verdict"] not in ("violated", "documented limit"):
        return
    for line in (reading.witness(entry, lang), reading.place(entry, lang), *reading.mask(entry)):
        if line:
            yield f"      {line}"


def summary(reports: Sequence[Plain], lang: str) -> Iterator[str]:
    """One line a subject, what is violated or why nothing was tried; then the totals."""
    width = max((len(str(report["subject"])) for report in reports), default=0)
    totals: dict[str, int] = {}
    for report in reports:
        for key, count in report["verdicts"].items():
            totals[key] = totals.get(key, 0) + count
        violated = [entry["probe"] for entry in report["laws"] if entry["verdict"] == "violated"]
        said = (
            " ".join(report["error"][:2]) if "error" in report else ", ".join(violated) or reading.counts(report, lang)
        )
        yield visible(f"{str(report['subject']).ljust(width)}  {said}", keep="")
    yield ""
    yield reading.counts({"verdicts": totals}, lang)


def law_lines(law: Law, lang: str) -> Iterator[str]:
    """All that is said of one law."""
    said = WORDS[lang]
    yield f"{law.id}: {law.statement[lang]}"
    yield f"  {said['formula']}: {law.formula}"
    yield f"  {said['conditions']}: {law.conditions[lang]}"
    yield f"  {said['why']}: {law.why[lang]}"
    yield f"  {said['chapter']}: {law.chapter}"
    yield f"  {said['probes']}:"
    width = max(len(probe.id) for probe in law.probes)
    for probe in law.probes:
        yield f"    {probe.id.ljust(width)}  {probe.does[lang]}{'  (--fast)' * probe.fast}"
