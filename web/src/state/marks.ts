/** Which cells to mark in every table: what the looked-at cell reads, and what reads it. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { readersOf, tryToExplain } from "./readers.ts";
import type { Session } from "./session.ts";
import type { Cell } from "./store.ts";

export type Mark = "operand" | "reader";

export type Marks = ReadonlyMap<string, ReadonlyMap<number, Mark>>;

const NONE: Marks = new Map();

export const MarksContext = createContext<Marks>(NONE);

/** The marks of one tensor. */
export function useMarks(key: string): ReadonlyMap<number, Mark> | undefined {
  return useContext(MarksContext).get(key);
}

export function marksOf(session: Session, selected: Cell | null): Marks {
  if (!selected || !session.engine.has(selected.key)) return NONE;
  const marks = new Map<string, Map<number, Mark>>();
  const put = (key: string, flat: number, mark: Mark): void => {
    const of = marks.get(key) ?? new Map<number, Mark>();
    if (!of.has(flat)) of.set(flat, mark);
    marks.set(key, of);
  };
  const explained = tryToExplain(session.engine, selected);
  if (typeof explained !== "string") for (const { key, flat } of explained.operands) put(key, flat, "operand");
  for (const { key, cells } of readersOf(selected, session)) for (const flat of cells) put(key, flat, "reader");
  return marks;
}
