/** The one store of the page: what is looked at, in which language, and how often the numbers changed. */
import type { Language } from "../data/types.ts";
import type { Reason } from "../notation/recorded.ts";

/** A cell: a tensor's key and a row-major position in it, counted from 0. */
export interface Cell {
  key: string;
  flat: number;
}

/** What of the run the middle of the page shows. */
export type View = "forward" | "gradient" | "update" | "after" | "compare" | "probes";

export const VIEWS: readonly View[] = ["forward", "gradient", "update", "after", "compare", "probes"];

/** Views that a run without an update has too. */
export const WITHOUT_UPDATE: ReadonlySet<View> = new Set(["forward", "gradient", "probes"]);

export type Theme = "system" | "light" | "dark";

export type Dialog = { kind: "latex"; source: string } | { kind: "help" } | { kind: "about" };

export interface State {
  language: Language;
  theme: Theme;
  /** The system asks for dark colours. */
  systemIsDark: boolean;
  view: View;
  selected: Cell | null;
  /** The cell under the pointer in the inspector: marked in its table. */
  pointed: Cell | null;
  /** Cells visited before the selected one, and after it (when the reader went back). */
  past: readonly Cell[];
  future: readonly Cell[];
  /** Ids of the parts that are open. */
  open: ReadonlySet<string>;
  /** The head shown for each part, counted from 0. */
  heads: Readonly<Record<string, number>>;
  /** Id of the chosen token texts; "" for those of the vocabulary. */
  labels: string;
  /** Decimals in tables. */
  digits: number;
  /** Heat maps show the square root of a number's share, so that small ones can be told apart. */
  stretched: boolean;
  dialog: Dialog | null;
  walk: { id: string; step: number } | null;
  /** Ids of the derivations that are unfolded, with the number of steps shown. */
  unfolded: Readonly<Record<string, number>>;
  /** Single keys do something outside text fields. */
  shortcuts: boolean;
  /** Counts recomputations: a view that reads numbers depends on it. */
  version: number;
  /** Something differs from the trace. */
  edited: boolean;
  /** Why the last change was refused; null when it was not. */
  notice: Reason | null;
  /** A recomputation is under way. */
  busy: boolean;
  /** Everything is shown, for paper. */
  printing: boolean;
}

export class Store<S extends object = State> {
  private state: S;
  private readonly listeners = new Set<() => void>();

  constructor(initial: S) {
    this.state = initial;
  }

  get(): S {
    return this.state;
  }

  set(change: Partial<S>): void {
    this.state = { ...this.state, ...change };
    for (const listener of [...this.listeners]) listener();
  }

  /** Calls `listener` after every change; returns the function that ends this. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

export function sameCell(a: Cell | null, b: Cell | null): boolean {
  return a === b || (a !== null && b !== null && a.key === b.key && a.flat === b.flat);
}
