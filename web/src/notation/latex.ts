/**
 * The index face of a formula as LaTeX, by the rules of `notation/latex.py`: readers count from 1. The text holds no word
 * of any language and nothing that a user or a model wrote. Operands may be marked with `\htmlData{op=N}{…}`.
 */
import type { Expr } from "../data/types.ts";
import { numberLatex } from "./numerals.ts";
import { AND, ATOM, CHOICE, COMPARISON, type Frame, OR, POWER, PRODUCT, SERIES, SUM, addedBy, lifted } from "./plain.ts";
import { type Style, nameLatex } from "./symbols.ts";
import { isIverson, written } from "./tree.ts";

type Ref = Extract<Expr, ["ref", ...unknown[]]>;
type Cond = Extract<Expr, ["cond", ...unknown[]]>;

const COMPARISONS: Readonly<Record<string, string>> = { "<": "<", "<=": "\\le", ">": ">", ">=": "\\ge", "==": "=", "!=": "\\ne" };
const OPPOSITE: Readonly<Record<string, string>> = { "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==" };
const TALL = ["\\frac", "\\sum", "\\begin", "\\max_", "\\operatorname*"];

/** `e` as LaTeX; in parentheses where it holds less tightly than `least`. */
export function exprLatex(e: Expr, style: Style, frame: Frame, least = CHOICE): string {
  return new LatexPrinter(style, frame).show(e, least);
}

/** Terms, each seen from its own frame, as a written sum. */
export function addedLatex(terms: readonly { term: Expr; frame: Frame }[], style: Style): string {
  return addedBy(terms, "-", (e, frame, least) => exprLatex(e, style, frame, least));
}

/** A condition, or its opposite: `j \in J_i`, `j \notin J_i`, `B_{if} \le 0`. */
export function conditionLatex(test: Expr, style: Style, frame: Frame, holds = true): string {
  return new LatexPrinter(style, frame).truth(test, CHOICE, holds);
}

/** `formula` over a brace that names the consumer it comes through. */
export function bracedPath(formula: string, consumer: string, style: Style): string {
  return `\\underbrace{${formula}}_{${style.name(consumer)}}`;
}

function inParentheses(text: string): string {
  return isTall(text) ? `\\left(${text}\\right)` : `(${text})`;
}

function isTall(text: string): boolean {
  return TALL.some((sign) => text.includes(sign));
}

/** Fractions and sums of a case at full size. */
function roomy(text: string): string {
  return isTall(text) ? `\\displaystyle ${text}` : text;
}

function numeral(text: string): [string, number] {
  return [text, text.startsWith("-") ? SUM : text.includes("cdot") ? PRODUCT : ATOM];
}

/** A size or hyperparameter; `max`, `max2` name the largest exponent that the arithmetic of a cell takes out. */
function scalarLatex(name: string): string {
  if (!name.startsWith("max")) return nameLatex(name);
  return "\\max" + (name.length > 3 ? `_{${name.slice(3)}}` : "");
}

class LatexPrinter {
  constructor(private readonly style: Style, private readonly frame: Frame) {}

  show(e: Expr, least: number): string {
    const [text, strength] = this.piece(e);
    return strength >= least ? text : inParentheses(text);
  }

  private linked(e: Expr, text: string): string {
    const operand = e[0] === "ref" ? this.frame.link?.(written(e)) : undefined;
    return operand === undefined ? text : `\\htmlData{op=${operand}}{${text}}`;
  }

  private piece(whole: Expr): [text: string, strength: number] {
    const value = this.frame.numbers.get(written(whole));
    if (value !== undefined) {
      const [text, strength] = numeral(numberLatex(value, this.frame.digits));
      return [this.linked(whole, text), strength];
    }
    const e = lifted(whole, this.frame.numbers);
    switch (e[0]) {
      case "num":
        return numeral(numberLatex(e[1], null));
      case "const":
        return [e[1] === "pi" ? "\\pi" : "\\infty", ATOM];
      case "scalar":
        return [scalarLatex(e[1]), ATOM];
      case "idx": {
        // A letter as a number counts from 0, whatever the reader's indices do.
        const at = this.frame.at[e[1]];
        return [at === undefined ? `(${nameLatex(e[1])} - 1)` : String(at), ATOM];
      }
      case "ref": {
        const [text, openToPower] = this.style.cell(e[1], e[2], e[3].map((index) => this.index(index)));
        return [this.linked(e, text), openToPower ? ATOM : POWER];
      }
      case "neg":
        return [`-${this.show(e[1], SERIES)}`, SUM];
      case "add":
        return [addedLatex((e.slice(1) as Expr[]).map((term) => ({ term, frame: this.frame })), this.style), SUM];
      case "mul":
        return [this.product(e.slice(1) as Expr[]), PRODUCT];
      case "div":
        return [`\\frac{${this.show(e[1], CHOICE)}}{${this.show(e[2], CHOICE)}}`, POWER];
      case "pow":
        return [`${this.show(e[1], ATOM)}^{${this.show(e[2], CHOICE)}}`, POWER];
      case "fn":
        return this.call(e[1], e.slice(2) as Expr[]);
      case "reduce":
        return this.reduction(e);
      case "cond":
        return isIverson(e) ? [`[${this.truth(e[1], CHOICE)}]`, ATOM] : [this.cases(e), CHOICE];
      case "cmp":
        return [this.comparison(e[1], e[2], e[3]), COMPARISON];
      case "bool":
        return [this.truth(e, CHOICE), CHOICE];
    }
  }

  /** What stands in a subscript: a position, counted from 1. */
  private index(e: Expr): string {
    if (e[0] === "idx") {
      const at = this.frame.at[e[1]];
      return at === undefined ? nameLatex(e[1]) : String(at + 1);
    }
    if (e[0] === "num") return String(Math.trunc(e[1]) + 1);
    if (e[0] !== "ref") return `${this.show(e, SUM)} + 1`;
    const value = this.frame.numbers.get(written(e));
    return value === undefined ? this.piece(e)[0] : String(Math.trunc(value) + 1);
  }

  /** Factors side by side; a dot where two numbers would run together. A sum sign may end the product. */
  private product(factors: readonly Expr[]): string {
    return factors
      .map((factor, k) => {
        const [text, strength] = this.piece(factor);
        const least = k === factors.length - 1 && factor[0] === "reduce" ? SERIES : POWER;
        const piece = strength < least ? inParentheses(text) : text;
        const dotted = this.frame.numbers.size > 0 || /^\d/.test(piece);
        return k === 0 ? piece : (dotted ? " \\cdot " : " ") + piece;
      })
      .join("");
  }

  private call(name: string, args: readonly Expr[]): [string, number] {
    const inside = args[0];
    switch (name) {
      case "exp":
        return [`e^{${this.show(inside, CHOICE)}}`, POWER];
      case "sqrt":
        return [`\\sqrt{${this.show(inside, CHOICE)}}`, ATOM];
      case "abs":
        return [`\\left|${this.show(inside, CHOICE)}\\right|`, ATOM];
    }
    if (name === "ln" && inside[0] === "reduce" && !this.frame.numbers.has(written(inside))) {
      return [`\\ln ${this.piece(inside)[0]}`, SERIES];
    }
    const command = name === "erf" ? "\\operatorname{erf}" : `\\${name}`;
    return [command + inParentheses(args.map((part) => this.show(part, CHOICE)).join(", ")), POWER];
  }

  private reduction(e: Extract<Expr, ["reduce", ...unknown[]]>): [string, number] {
    const [, op, inner, all, where] = e;
    const loops = all.filter(([, dimension]) => !this.style.hidden.has(dimension));
    if (loops.length === 0 && where === null) return this.piece(inner);
    const body = this.show(inner, SERIES);
    let letters = all.map(([letter]) => nameLatex(letter)).join(",");
    if (where !== null) letters = `${letters}:\\,${this.truth(where, CHOICE)}`;
    if (op === "max") return [`\\max_{${letters}} ${body}`, SERIES];
    let ends = loops.map(([letter, size]) => `\\sum_{${nameLatex(letter)}=1}^{${scalarLatex(size)}} `).join("");
    if (where !== null) ends = `\\sum_{${letters}} `;
    if (op === "mean") {
      // A filter leaves terms out of a mean's sum, never out of its count.
      const count = (where === null ? loops : all).map(([, size]) => scalarLatex(size)).join("\\,");
      ends = `\\frac{1}{${count}} ${ends}`;
    }
    return [ends + body, SERIES];
  }

  private cases(e: Cond): string {
    const rows: { then: Expr; test: Expr }[] = [];
    let rest: Expr = e;
    while (rest[0] === "cond" && (rest === e || !isIverson(rest))) {
      rows.push({ then: rest[2], test: rest[1] });
      rest = rest[3];
    }
    const lines = rows.map(({ then, test }) => `${roomy(this.show(then, OR))}, & ${this.truth(test, CHOICE)}`);
    // Of two rows each says when it holds; of more, the first that holds counts.
    const last = rows.length === 1 ? this.truth(rows[0].test, CHOICE, false) : "\\text{otherwise}";
    lines.push(`${roomy(this.show(rest, OR))}, & ${last}`);
    return `\\begin{cases} ${lines.join(" \\\\ ")} \\end{cases}`;
  }

  /** A condition, or (`holds` false) its opposite. A table of truth values reads as a set: `j \in J_i`. */
  truth(test: Expr, least: number, holds = true): string {
    if (test[0] === "ref" && test[3].length > 0) {
      const member = this.index(test[3][test[3].length - 1]);
      return `${member} ${holds ? "\\in" : "\\notin"} ${this.setOf(test)}`;
    }
    if (test[0] === "bool") {
      const args = test.slice(2) as Expr[];
      if (test[1] === "not") return this.truth(args[0], least, !holds);
      const strength = (test[1] === "and") === holds ? AND : OR;
      const sign = strength === AND ? " \\land " : " \\lor ";
      const text = args.map((part) => this.truth(part, strength + 1, holds)).join(sign);
      return strength >= least ? text : `(${text})`;
    }
    if (test[0] === "cmp") return this.comparison(holds ? test[1] : OPPOSITE[test[1]], test[2], test[3]);
    return `${this.show(test, SUM)} ${holds ? "\\ne" : "="} 0`;
  }

  /** The set that a table of truth values is, given all indices but the last. */
  private setOf(table: Ref): string {
    const given = table[3].slice(0, -1).map((index) => this.index(index));
    return this.style.cell(table[1], table[2], given)[0];
  }

  private comparison(op: string, a: Expr, b: Expr): string {
    // Where one side is a letter, both are positions, and the reader counts those from 1.
    const positions = a[0] === "idx" || b[0] === "idx";
    const [left, right] = [a, b].map((side) => (positions ? this.index(side) : this.show(side, SUM)));
    return `${left} ${COMPARISONS[op]} ${right}`;
  }
}
