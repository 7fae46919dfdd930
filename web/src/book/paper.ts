/** Working with paper and pencil: which cells are hidden, what the reader wrote there, what the last check said. */
import { useMemo, useState } from "preact/hooks";
import { select } from "../state/actions.ts";
import { countedFrom, useSession, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { type Mark, firstWrong, markOf } from "./answers.ts";

export interface Paper {
  /** Whether the numbers of this tensor are hidden. */
  hides: (key: string) => boolean;
  asks: (cell: Cell) => boolean;
  text: (cell: Cell) => string;
  mark: (cell: Cell) => Mark;
  write: (cell: Cell, text: string) => void;
  check: () => void;
  /** What the last check found; null before the first. */
  found: { wrong: Cell | null; open: number; written: number } | null;
  /** Shows how the first wrong cell is computed. */
  hint: () => void;
  clear: () => void;
}

function nameOf({ key, flat }: Cell): string {
  return `${key}:${flat}`;
}

/** Paper for the finite ones of `every`; `hidden` are the tensors that must not be seen meanwhile. */
export function usePaper(every: readonly Cell[], hidden: ReadonlySet<string>): Paper {
  const session = useSession();
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [checked, setChecked] = useState<Readonly<Record<string, string>> | null>(null);
  const version = useStore((state) => state.version);
  const wanted = ({ key, flat }: Cell): number => session.engine.value(key)[flat] + countedFrom(session, key);
  const cells = useMemo(() => every.filter((cell) => Number.isFinite(wanted(cell))), [every, version]);
  const names = useMemo(() => new Set(cells.map(nameOf)), [cells]);
  const markIn = (written: Readonly<Record<string, string>> | null, cell: Cell): Mark =>
    markOf(written?.[nameOf(cell)] ?? "", wanted(cell));
  const wrong = firstWrong(cells, session.header.statements, (cell) => markIn(checked, cell));
  const written = cells.filter((cell) => (checked?.[nameOf(cell)] ?? "").trim() !== "").length;
  return {
    hides: (key) => hidden.has(key),
    asks: (cell) => names.has(nameOf(cell)),
    text: (cell) => texts[nameOf(cell)] ?? "",
    // A text that was changed after the check has not been judged.
    mark: (cell) => (checked?.[nameOf(cell)] === texts[nameOf(cell)] ? markIn(checked, cell) : "open"),
    write: (cell, text) => setTexts((before) => ({ ...before, [nameOf(cell)]: text })),
    check: () => setChecked(texts),
    found: checked && { wrong, open: cells.length - written, written },
    hint: () => wrong && select(session, wrong),
    clear: () => {
      setTexts({});
      setChecked(null);
      session.store.set({ selected: null, past: [] });
    },
  };
}
