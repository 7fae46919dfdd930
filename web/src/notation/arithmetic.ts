/**
 * The arithmetic of one expression at one cell, as data: what is printed and linked.
 *
 * Conditions are decided first; a sum inside a larger formula becomes one number and is spelt out beside it; a long sum
 * keeps its largest terms, the remainder as one number, and a count of the terms that are exactly zero.
 */
import type { Expr } from "../data/types.ts";
import { EvaluationError } from "./evaluate.ts";
import { keyOf } from "./program.ts";
import { type At, type Reduce, type Ref, type ScalarEvaluator, exponentOf, exponentialSum } from "./scalar.ts";
import { children, isIverson, rebuild, walk, written } from "./tree.ts";

export const KEEP = 4;
const FOLD_ABOVE = 6;
const LARGE_EXPONENT = 700;

/** A cell that a formula reads, lookups followed. */
export interface Read {
  key: string;
  index: number[];
  flat: number;
  value: number;
}

/** An expression at one cell, conditions decided. */
export interface Formula {
  expr: Expr;
  at: At;
  /** The number of each operand, size and sum, by its written form. */
  numbers: ReadonlyMap<string, number>;
  /** The cell behind each operand, by its written form. */
  cells: ReadonlyMap<string, Read>;
  /** Every cell read, in the order of reading (the cells of `[test]` brackets included), each once. */
  operands: Read[];
  value: number;
}

export interface Decided {
  test: Formula;
  holds: boolean;
}

/** The largest exponent, taken out of a softmax or log-sum-exp whose plain exponentials would overflow. */
export interface Maximum {
  name: string;
  of: Reduce;
  at: At;
  value: number;
}

/** A sum, mean or maximum spelt out. */
export interface Series {
  of: Reduce;
  at: At;
  /** The terms shown, in written order. */
  terms: Formula[];
  /** How many more are gathered in `rest`. */
  others: number;
  rest: number;
  /** Terms that are exactly 0 (minus infinity in a maximum). */
  zeros: number;
  /** What a mean divides by. */
  count: number;
  value: number;
}

/** One statement at one cell. */
export interface Arithmetic {
  formula: Formula;
  conditions: Decided[];
  /** The lookups that the formula goes through (`t[1] = 0`). */
  tables: Formula[];
  maxima: Maximum[];
  /** Each reduction of the formula; when the formula is itself one, it is the only one. */
  series: Series[];
  /** The series that the whole formula is, if it is one. */
  whole: Series | null;
}

/** Works `expr` out at one cell. Throws `EvaluationError` when an operand is missing or a lookup misses. */
export function arithmetic(expr: Expr, at: At, evaluator: ScalarEvaluator, keep = KEEP): Arithmetic {
  const value = evaluator.number(expr, at);
  const conditions: Decided[] = [];
  const maxima: Maximum[] = [];
  const shown = takeOutMaxima(decide(expr, at, evaluator, conditions), at, evaluator, maxima);
  const stable = evaluator.withScalars(Object.fromEntries(maxima.map((m) => [m.name, m.value])));
  const outside = [...outsideSeries(shown)];
  const tables = distinct(outside.filter((node) => node[0] === "ref").flatMap(children)).filter((index) => index[0] === "ref");
  const series = distinct(outside)
    .filter((node) => node[0] === "reduce")
    .map((node) => spellOut(node as Reduce, at, stable, keep));
  return {
    formula: formulaOf(shown, at, stable, value),
    conditions,
    tables: tables.map((table) => formulaOf(table, at, stable, stable.number(table, at))),
    maxima,
    series,
    whole: shown[0] === "reduce" ? series[0] : null,
  };
}

function distinct(nodes: readonly Expr[]): Expr[] {
  return [...new Map(nodes.map((node) => [written(node), node])).values()];
}

/**
 * `e` with every condition outside a reduction replaced by the branch taken, noting each in `found`. `1 if test else 0`
 * is noted too, but stays: it is a number of the formula, printed as `[test]`.
 */
function decide(e: Expr, at: At, evaluator: ScalarEvaluator, found: Decided[]): Expr {
  if (e[0] === "cond") {
    const holds = evaluator.truth(e[1], at);
    if (!found.some((other) => written(other.test.expr) === written(e[1]))) {
      found.push({ test: formulaOf(e[1], at, evaluator, holds ? 1 : 0, true), holds });
    }
    return isIverson(e) ? e : decide(holds ? e[2] : e[3], at, evaluator, found);
  }
  if (e[0] === "reduce" || e[0] === "ref") return e;
  return rebuild(e, children(e).map((part) => decide(part, at, evaluator, found)));
}

/** The terms of a reduction, the largest `keep` of them when there are more than `FOLD_ABOVE` that count. */
function spellOut(e: Reduce, at: At, evaluator: ScalarEvaluator, keep: number): Series {
  const largest = e[1] === "max";
  const nothing = largest ? -Infinity : 0;
  const everything = [...evaluator.steps(e, at)].map((inner) => ({ inner, value: evaluator.number(e[2], inner) }));
  const counting = everything.filter(({ value }) => value !== nothing);
  let shown = counting;
  if (counting.length > FOLD_ABOVE) {
    const size = ({ value }: { value: number }): number => (largest ? value : Math.abs(value));
    // Sorting is stable, so of equal terms the earlier is kept; filtering brings back written order.
    const kept = new Set([...counting].sort((a, b) => size(b) - size(a)).slice(0, keep));
    shown = counting.filter((term) => kept.has(term));
  }
  const hidden = counting.filter((term) => !shown.includes(term));
  return {
    of: e,
    at,
    terms: shown.map(({ inner, value }) => formulaOf(decide(e[2], inner, evaluator, []), inner, evaluator, value)),
    others: hidden.length,
    rest: hidden.reduce((total, { value }) => total + value, 0),
    zeros: everything.length - counting.length,
    count: evaluator.count(e),
    value: evaluator.number(e, at),
  };
}

/** `e` with the numbers of its parts. `lenient`: what cannot be read stays a symbol (what a condition never looked at). */
function formulaOf(e: Expr, at: At, evaluator: ScalarEvaluator, value: number, lenient = false): Formula {
  const numbers = new Map<string, number>();
  const cells = new Map<string, Read>();
  const operands = new Map<string, Read>();
  const note = (read: Read): void => {
    const name = `${read.key}[${read.flat}]`;
    if (!operands.has(name)) operands.set(name, read);
  };
  const look = (ref: Ref): void => {
    try {
      const read = { key: keyOf(ref[1], ref[2]), ...evaluator.cell(ref, at) };
      note(read);
      cells.set(written(ref), read);
      numbers.set(written(ref), read.value);
    } catch (error) {
      if (!lenient || !(error instanceof EvaluationError)) throw error;
    }
  };
  for (const node of outsideSeries(e)) {
    if (node[0] === "ref") look(node);
    else if (node[0] === "cond") {
      numbers.set(written(node), evaluator.number(node, at));
      formulaOf(node[1], at, evaluator, 0, true).operands.forEach(note);
    } else if (node[0] === "scalar" || node[0] === "reduce") numbers.set(written(node), evaluator.number(node, at));
  }
  return { expr: e, at, numbers, cells, operands: [...operands.values()], value };
}

/** `e` and what is below it, without looking into reductions, cells and `[test]` brackets. */
function* outsideSeries(e: Expr): Generator<Expr> {
  yield e;
  if (e[0] === "reduce" || e[0] === "ref" || e[0] === "cond") return;
  for (const part of children(e)) yield* outsideSeries(part);
}

/**
 * `exp(f)/sum(exp(g))` as `exp(f - max)/sum(exp(g - max))`, `ln(sum(exp(g)))` as `max + ln(sum(exp(g - max)))`, where the
 * largest exponent is beyond `LARGE_EXPONENT`.
 */
function takeOutMaxima(e: Expr, at: At, evaluator: ScalarEvaluator, found: Maximum[]): Expr {
  if (e[0] === "reduce" || e[0] === "ref" || e[0] === "cond") return e;
  const large = (part: Expr): Reduce | null => {
    const total = exponentialSum(part);
    return total !== null && Math.abs(evaluator.largestExponent(total, at)) > LARGE_EXPONENT ? total : null;
  };
  if (e[0] === "div" && e[1][0] === "fn" && e[1][1] === "exp") {
    const total = large(e[2]);
    if (total !== null) {
      const name = maximumOf(total, at, evaluator, found);
      return ["div", ["fn", "exp", less(e[1][2] as Expr, name)], shifted(total, name)];
    }
  }
  if (e[0] === "fn" && e[1] === "ln") {
    const total = large(e[2] as Expr);
    if (total !== null) {
      const name = maximumOf(total, at, evaluator, found);
      return ["add", name, ["fn", "ln", shifted(total, name)]];
    }
  }
  return rebuild(e, children(e).map((part) => takeOutMaxima(part, at, evaluator, found)));
}

function maximumOf(total: Reduce, at: At, evaluator: ScalarEvaluator, found: Maximum[]): Expr {
  const of: Reduce = ["reduce", "max", exponentOf(total), total[3], total[4]];
  const known = found.find((other) => written(other.of) === written(of));
  if (known) return ["scalar", known.name];
  const name = found.length === 0 ? "max" : `max${found.length + 1}`;
  found.push({ name, of, at, value: evaluator.largestExponent(total, at) });
  return ["scalar", name];
}

function shifted(total: Reduce, name: Expr): Expr {
  return ["reduce", "sum", ["fn", "exp", less(exponentOf(total), name)], total[3], total[4]];
}

function less(e: Expr, name: Expr): Expr {
  return ["add", ...(e[0] === "add" ? (e.slice(1) as Expr[]) : [e]), ["neg", name]];
}

/** Whether a condition compares numbers, so that these are worth showing. */
export function readsAComparison(test: Expr): boolean {
  return [...walk(test)].some((node) => node[0] === "cmp");
}
