/**
 * Expressions as plain Unicode text: `(Σ_c Q[0,1,c]·K[0,0,c]) / √d_k`. Indices count from 0, as in Python; `spec.md`
 * (section "Plain text") states every rule, because the terminal prints the same text.
 */
import type { Expr } from "../data/types.ts";
import { DIGITS, numberText } from "./numerals.ts";
import type { At } from "./scalar.ts";
import { nameText } from "./symbols.ts";
import { isIverson, written } from "./tree.ts";

/** How tightly a printed piece holds together; a weaker one gets parentheses where a stronger one is called for. */
export const [CHOICE, OR, AND, NOT, COMPARISON, SUM, SERIES, PRODUCT, POWER, ATOM] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

const COMPARISONS: Readonly<Record<string, string>> = { "<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "=", "!=": "≠" };
const NOTHING: ReadonlyMap<string, number> = new Map();

/** From where an expression is looked at. */
export interface Frame {
  /** Positions of letters, from 0. */
  at: At;
  /** The number that stands in a node's place, by its written form. */
  numbers: ReadonlyMap<string, number>;
  digits: number;
  /** The operand number of a cell, by its written form, where operands are to be linked (LaTeX alone). */
  link?: (text: string) => number | undefined;
}

export function frameOf(at: At = {}, numbers: ReadonlyMap<string, number> = NOTHING, digits = DIGITS): Frame {
  return { at, numbers, digits };
}

/** `(-a)*b` and `(-a)/b` as `-(a*b)` and `-(a/b)`: the same number, and how one writes it. */
export function lifted(e: Expr, numbers: ReadonlyMap<string, number>): Expr {
  if ((e[0] !== "mul" && e[0] !== "div") || numbers.has(written(e))) return e;
  const first = e[1] as Expr;
  const inner = lifted(first, numbers);
  if (inner[0] !== "neg" || numbers.has(written(first))) return e;
  return ["neg", e[0] === "div" ? ["div", inner[1], e[2]] : ["mul", inner[1], ...(e.slice(2) as Expr[])]];
}

/** The terms of a sum with their signs: how `a + b − c` is joined, whichever printer prints it. */
export function addedBy(
  terms: readonly { term: Expr; frame: Frame }[], minus: string, show: (e: Expr, frame: Frame, least: number) => string,
): string {
  return terms
    .map(({ term, frame }, k) => {
      const numeral = (e: Expr): boolean => frame.numbers.has(written(e));
      if (k === 0) return show(term, frame, term[0] === "add" && !numeral(term) ? SERIES : SUM);
      const body = lifted(term, frame.numbers);
      if (body[0] === "neg" && !numeral(body)) return ` ${minus} ${show(body[1], frame, SERIES)}`;
      return ` + ${show(body, frame, SERIES)}`;
    })
    .join("");
}

export class PlainPrinter {
  constructor(private readonly frame: Frame, private readonly names: ReadonlyMap<string, string>) {}

  /** The text of `e`, in parentheses where it holds less tightly than `least`. */
  show(e: Expr, least: number): string {
    const [text, strength] = this.piece(e);
    return strength >= least ? text : `(${text})`;
  }

  private piece(whole: Expr): [text: string, strength: number] {
    const value = this.frame.numbers.get(written(whole));
    if (value !== undefined) return number(value, this.frame.digits);
    const e = lifted(whole, this.frame.numbers);
    switch (e[0]) {
      case "num":
        return number(e[1], null);
      case "const":
        return [e[1] === "pi" ? "π" : "∞", ATOM];
      case "scalar":
        return [nameText(e[1]), ATOM];
      case "idx":
        return [String(this.frame.at[e[1]] ?? e[1]), ATOM];
      case "ref": {
        const inside = e[3].length > 0 ? `[${e[3].map((index) => this.show(index, CHOICE)).join(",")}]` : "";
        return [(this.names.get(e[1]) ?? e[1]) + (e[2] ? `.${e[2]}` : "") + inside, ATOM];
      }
      case "neg":
        return [`−${this.show(e[1], SERIES)}`, SUM];
      case "add":
        return [added((e.slice(1) as Expr[]).map((term) => ({ term, frame: this.frame })), this.names), SUM];
      case "mul":
        return [(e.slice(1) as Expr[]).map((factor) => this.show(factor, POWER)).join("·"), PRODUCT];
      case "div":
        return [`${this.show(e[1], e[1][0] === "mul" ? PRODUCT : POWER)} / ${this.show(e[2], POWER)}`, PRODUCT];
      case "pow":
        return [this.power(e[1], e[2]), POWER];
      case "fn":
        return this.call(e[1], e.slice(2) as Expr[]);
      case "reduce":
        return this.reduction(e);
      case "cond":
        if (isIverson(e)) return [`[${this.show(e[1], CHOICE)}]`, ATOM];
        return [`${this.show(e[2], OR)} if ${this.show(e[1], OR)} else ${this.show(e[3], CHOICE)}`, CHOICE];
      case "cmp":
        return [`${this.show(e[2], SUM)} ${COMPARISONS[e[1]]} ${this.show(e[3], SUM)}`, COMPARISON];
      case "bool": {
        const args = e.slice(2) as Expr[];
        if (e[1] === "not") return [`not ${this.show(args[0], NOT)}`, NOT];
        const strength = e[1] === "and" ? AND : OR;
        return [args.map((part) => this.show(part, strength + 1)).join(` ${e[1]} `), strength];
      }
    }
  }

  private power(base: Expr, exponent: Expr): string {
    const raised = exponent[0] !== "num" ? undefined : exponent[1] === 2 ? "²" : exponent[1] === 3 ? "³" : undefined;
    return this.show(base, ATOM) + (raised ?? `^${this.show(exponent, ATOM)}`);
  }

  private call(name: string, args: readonly Expr[]): [string, number] {
    if (name === "sqrt") return [`√${this.show(args[0], ATOM)}`, POWER];
    return [`${name}(${args.map((part) => this.show(part, CHOICE)).join(", ")})`, ATOM];
  }

  private reduction(e: Extract<Expr, ["reduce", ...unknown[]]>): [string, number] {
    const [, op, body, loops, where] = e;
    const letters = loops.map(([letter]) => letter).join(",");
    const plain = letters.length === 1 ? `_${letters}` : `_{${letters}}`;
    const under = where === null ? plain : `_{${letters}: ${this.show(where, CHOICE)}}`;
    if (op === "sum") return [`Σ${under} ${this.show(body, SERIES)}`, SERIES];
    return [`${op}${under}(${this.show(body, CHOICE)})`, ATOM];
  }
}

function number(value: number, digits: number | null): [string, number] {
  return [numberText(value, digits), value < 0 ? SUM : ATOM];
}

/** `e` as text; `names` shortens ids. */
export function plain(e: Expr, frame: Frame, names: ReadonlyMap<string, string>, least = CHOICE): string {
  return new PlainPrinter(frame, names).show(e, least);
}

/** Terms, each seen from its own frame, as a written sum: `a + b − c`. */
export function added(terms: readonly { term: Expr; frame: Frame }[], names: ReadonlyMap<string, string>): string {
  return addedBy(terms, "−", (e, frame, least) => plain(e, frame, names, least));
}
