/** How a number came about, as plain data: what `Engine.arithmetic` returns and the views draw. */
import type { Language } from "../data/types.ts";

/** A cell that a formula reads; `\htmlData{op=N}{…}` in the LaTeX of an explanation marks operand number N. */
export interface Operand {
  key: string;
  flat: number;
  /** Position along each axis, counted from 0. */
  index: number[];
  value: number;
  /** The cell's symbol with indices that count from 1: `K_{21}`. */
  tex: string;
}

/** A condition of the definition, resolved first; `tex` states what holds (its opposite where the test fails). */
export interface Condition {
  tex: string;
  text: string;
  holds: boolean;
}

/** Something settled before the arithmetic begins: a lookup `t_2 = 1`, a largest exponent taken out. */
export interface Note {
  tex: string;
  text: string;
}

/** A sum inside a larger formula: shown as its value there and spelt out here. */
export interface Where {
  /** `\sum_{c=1}^{d_k} Q_{2c} K_{1c}` */
  symbolic: string;
  /** Its terms with this run's numbers; long sums keep the largest terms and one remainder. */
  numeric: string;
  /** Where the terms shown stand, counted from 1, when they are not all there are: `i = 1, 3`. */
  places: string;
  value: number;
  /** How many terms are shown, how many are gathered into the remainder, how many are exactly zero (not shown). */
  terms: number;
  folded: number;
  zeros: number;
}

/** One statement's share of the number: the whole of a forward value, one path of a gradient. */
export interface Contribution {
  /** Position in `header.statements`. */
  statement: number;
  /** For a gradient: the quantity that sends it. */
  consumer: string | null;
  conditions: Condition[];
  notes: Note[];
  /** The formula with this cell's indices. */
  symbolic: string;
  /** The same with this run's numbers. */
  numeric: string;
  /** As in `Where`, where the formula is itself one sum. */
  places: string;
  value: number;
  /** The sums inside the formula; where the formula is itself one sum, `numeric` spells it out and there is none. */
  where: Where[];
  /** Terms of that one sum that are gathered into a remainder, and that are exactly zero. */
  folded: number;
  zeros: number;
}

export interface CellExplanation {
  key: string;
  flat: number;
  index: number[];
  /** `A_{21}` */
  tex: string;
  /** How Python and the command line write it: `blocks.0.attn.A[0,1,0]`. */
  python: string;
  /** How the notes write it, as text: `a_21`. */
  entry: string;
  value: number;
  /** Nothing computes it: an input, a parameter, a constant, or the seed of the backward pass. */
  given: boolean;
  via: Contribution[];
  operands: Operand[];
  /** The same as the lines of `glassformer explain`; `recorded` is the recorded value, where it is to be compared. */
  text(language: Language, recorded?: number): string[];
}
