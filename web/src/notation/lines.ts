/** The arithmetic of a cell as lines: plain text (layout in `spec.md`, "Arithmetic of a cell") and LaTeX for the page. */
import type { Expr, Language } from "../data/types.ts";
import { type Arithmetic, type Decided, type Formula, type Maximum, type Series, readsAComparison } from "./arithmetic.ts";
import { addedLatex, conditionLatex, exprLatex } from "./latex.ts";
import { numberLatex, numberText } from "./numerals.ts";
import { type Frame, added, frameOf, plain } from "./plain.ts";
import type { Style } from "./symbols.ts";

interface Words {
  where: string;
  via: string;
  yes: string;
  no: string;
  given: string;
  recorded: string;
  difference: string;
  noTerms: string;
  smaller(count: number): string;
  vanish(count: number, what: string): string;
}

export const WORDS: Readonly<Record<Language, Words>> = {
  en: {
    where: "where", via: "via", yes: "yes", no: "no", given: "given", recorded: "recorded", difference: "difference",
    noTerms: "no terms",
    smaller: (count) => (count === 1 ? "1 smaller term" : `${count} smaller terms`),
    vanish: (count, what) => (count === 1 ? `1 term is ${what}` : `${count} terms are ${what}`),
  },
  zh: {
    where: "其中", via: "经由", yes: "是", no: "否", given: "已给定", recorded: "记录值", difference: "相差", noTerms: "没有项",
    smaller: (count) => `另外 ${count} 个较小的项`,
    vanish: (count, what) => `${count} 项为 ${what}`,
  },
};

/** `parts` without those that only repeat the one before. */
function chain(...parts: string[]): string[] {
  return parts.filter((part, k) => k === 0 || part !== parts[k - 1]);
}

/**
 * The letters of a sum and the positions of the terms shown, counted from `first`. No positions where every term there is has its place
 * in the sum: without a filter, and with nothing folded away.
 */
function positions(s: Series, first: number): [letters: string, places: string[]] {
  const letters = s.of[3].map(([letter]) => letter);
  if (s.of[4] === null && s.others === 0) return ["", []];
  const places = s.terms.map(({ at }) => letters.map((letter) => String(at[letter] + first)).join(","));
  return letters.length === 1 ? [letters[0], places] : [`(${letters.join(",")})`, places.map((place) => `(${place})`)];
}

/** Writes arithmetic as plain text: `names` shortens ids, `digits` is how exact numbers are (`numerals.ts`). */
export class TextWriter {
  constructor(
    private readonly names: ReadonlyMap<string, string>, private readonly words: Words, private readonly digits: number,
  ) {}

  number(x: number): string {
    return numberText(x, this.digits);
  }

  private symbolic(e: Expr, formula: Pick<Formula, "at">): string {
    return plain(e, frameOf(formula.at), this.names);
  }

  private frame(formula: Formula): Frame {
    return frameOf(formula.at, formula.numbers, this.digits);
  }

  private numeric(formula: Formula): string {
    return plain(formula.expr, this.frame(formula), this.names);
  }

  /** `lead` and the formula; the numbers and the result; one `where` line per sum inside the formula. */
  arithmetic(a: Arithmetic, lead: string, indent = "", notes: readonly string[] = []): string[] {
    const remarks = [...notes, ...this.notes(a)].map((note) => `   [${note}]`).join("");
    const [numbers, zeros] = a.whole ? this.series(a.whole) : [this.numeric(a.formula), ""];
    const steps = chain(this.symbolic(a.formula.expr, a.formula), numbers, this.number(a.formula.value));
    const lines =
      steps.length <= 2
        ? [`${indent}${lead}${steps.join(" = ")}${zeros}${remarks}`]
        : [`${indent}${lead}${steps[0]}${remarks}`, `${indent}  = ${steps.slice(1).join(" = ")}${zeros}`];
    for (const series of a.whole ? [] : a.series) {
      const [terms, none] = this.series(series);
      const told = chain(this.symbolic(series.of, series), terms, this.number(series.value));
      lines.push(`${indent}  ${this.words.where} ${told.join(" = ")}${none}`);
    }
    return lines;
  }

  /** Conditions, lookups and maxima, each settled before the arithmetic begins. */
  private notes(a: Arithmetic): string[] {
    return [...a.conditions.map((c) => this.condition(c)), ...a.tables.map((t) => this.table(t)), ...a.maxima.map((m) => this.maximum(m))];
  }

  condition({ test, holds }: Decided): string {
    const [symbolic, numeric] = [this.symbolic(test.expr, test), this.numeric(test)];
    const answer = holds ? this.words.yes : this.words.no;
    return readsAComparison(test.expr) && numeric !== symbolic ? `${symbolic}: ${numeric}, ${answer}` : `${symbolic}: ${answer}`;
  }

  table(table: Formula): string {
    return `${this.symbolic(table.expr, table)} = ${this.number(table.value)}`;
  }

  maximum(m: Maximum): string {
    return `${m.name} = ${this.symbolic(m.of, m)} = ${this.number(m.value)}`;
  }

  /** The terms with their numbers, and the remark on those that vanish. */
  private series(s: Series): [text: string, remark: string] {
    const smaller = `[${this.words.smaller(s.others)}`;
    if (s.of[1] === "max") {
      const shown = [...s.terms.map((term) => this.numeric(term)), ...(s.others > 0 ? [`${smaller}]`] : [])];
      return [shown.length > 0 ? `max(${shown.join(", ")})` : this.number(s.value), this.remark(s, this.number(-Infinity))];
    }
    let text = s.terms.length > 0 ? added(s.terms.map((t) => ({ term: t.expr, frame: this.frame(t) })), this.names) : "0";
    if (s.others > 0) text += ` + ${smaller}: ${this.number(s.rest)}]`;
    if (s.of[1] === "mean" && s.terms.length > 0) text = `(${text}) / ${s.count}`;
    return [text, this.remark(s, "0")];
  }

  /** Where the terms shown stand, when they are not all there are; and how many are `what` and not shown. */
  private remark(s: Series, what: string): string {
    const [letters, places] = positions(s, 0);
    const told = places.length > 0 ? [`${letters} = ${places.join(", ")}`] : [];
    if (s.zeros > 0) told.push(this.words.vanish(s.zeros, what));
    if (told.length === 0 && s.terms.length === 0) told.push(this.words.noTerms);
    return told.length > 0 ? `   (${told.join("; ")})` : "";
  }
}

/** Writes arithmetic as LaTeX, free of words; `operand` numbers a formula's cells where they are to be linked. */
export class LatexWriter {
  constructor(
    private readonly style: Style, private readonly digits: number,
    private readonly operand: (formula: Formula, text: string) => number | undefined,
  ) {}

  number(x: number): string {
    return numberLatex(x, this.digits);
  }

  symbolic(formula: Formula): string {
    return exprLatex(formula.expr, this.style, this.linked(frameOf(formula.at), formula));
  }

  /** The formula with this run's numbers; the terms themselves where the formula is one sum. */
  numeric(a: Arithmetic): string {
    return a.whole ? this.series(a.whole) : exprLatex(a.formula.expr, this.style, this.frame(a.formula));
  }

  private frame(formula: Formula): Frame {
    return this.linked(frameOf(formula.at, formula.numbers, this.digits), formula);
  }

  private linked(frame: Frame, formula: Formula): Frame {
    return { ...frame, link: (text) => this.operand(formula, text) };
  }

  condition({ test, holds }: Decided): string {
    return conditionLatex(test.expr, this.style, frameOf(test.at), holds);
  }

  /** A table's entry is a position, which readers count from 1. */
  table(table: Formula): string {
    return `${exprLatex(table.expr, this.style, frameOf(table.at))} = ${Math.trunc(table.value) + 1}`;
  }

  maximum(m: Maximum): string {
    const [name, of] = [["scalar", m.name] as Expr, m.of as Expr].map((e) => exprLatex(e, this.style, frameOf(m.at)));
    return `${name} = ${of} = ${this.number(m.value)}`;
  }

  left(series: Series): string {
    return exprLatex(series.of, this.style, frameOf(series.at));
  }

  /** Where the terms shown stand: `i = 1, 3`; nothing where each has its place in the sum. */
  places(s: Series | null): string {
    const [letters, places] = s ? positions(s, 1) : ["", []];
    return places.length > 0 ? `${letters} = ${places.join(", ")}` : "";
  }

  series(s: Series): string {
    if (s.of[1] === "max") {
      const shown = [...s.terms.map((t) => exprLatex(t.expr, this.style, this.frame(t))), ...(s.others > 0 ? ["\\ldots"] : [])];
      return shown.length > 0 ? `\\max(${shown.join(", ")})` : this.number(s.value);
    }
    let text = s.terms.length > 0 ? addedLatex(s.terms.map((t) => ({ term: t.expr, frame: this.frame(t) })), this.style) : "0";
    if (s.others > 0) text += ` + \\underbrace{${this.number(s.rest)}}_{\\cdots\\,${s.others}}`;
    return s.of[1] === "mean" && s.terms.length > 0 ? `\\frac{${text}}{${s.count}}` : text;
  }
}
