/**
 * The value of an expression at one cell: a second path, independent of the array evaluator.
 *
 * It is lazy: only the branch that a condition takes is ever looked at. Softmax and log-sum-exp are computed with the
 * largest exponent taken out. Sums run from left to right, so that Python gets the same digits.
 */
import type { Expr } from "../data/types.ts";
import { rowMajor } from "./arrays.ts";
import { EvaluationError } from "./evaluate.ts";
import { BINARY, UNARY, power } from "./kernels.ts";
import { type Tensor, keyOf } from "./program.ts";

/** Positions of letters, counted from 0. */
export type At = Readonly<Record<string, number>>;
export type Ref = Extract<Expr, ["ref", ...unknown[]]>;
export type Reduce = Extract<Expr, ["reduce", ...unknown[]]>;

/** What a cell's arithmetic reads: tensors by key (undefined where there is none) and named numbers. */
export interface Source {
  tensor(key: string): Tensor | undefined;
  scalar(name: string): number | undefined;
}

/** `e` itself when it is `sum(exp(...) for ...)`. */
export function exponentialSum(e: Expr): Reduce | null {
  return e[0] === "reduce" && e[1] === "sum" && e[2][0] === "fn" && e[2][1] === "exp" ? e : null;
}

/** The exponent of a sum of exponentials. */
export function exponentOf(total: Reduce): Expr {
  return (total[2] as Extract<Expr, ["fn", ...unknown[]]>)[2] as Expr;
}

const scratch = [new Float64Array(1), new Float64Array(1), new Float64Array(1)];

function compare(op: string, a: number, b: number): boolean {
  const [out, x, y] = scratch;
  [x[0], y[0]] = [a, b];
  BINARY[op](out, 0, x, 0, 0, y, 0, 0, 1);
  return out[0] !== 0;
}

export class ScalarEvaluator {
  constructor(private readonly source: Source, private readonly more: Readonly<Record<string, number>> = {}) {}

  /** The same operands with further named numbers. */
  withScalars(more: Readonly<Record<string, number>>): ScalarEvaluator {
    return new ScalarEvaluator(this.source, { ...this.more, ...more });
  }

  /** The value of `e`; a condition counts as 1 or 0. */
  number(e: Expr, at: At): number {
    const of = (part: Expr): number => this.number(part, at);
    switch (e[0]) {
      case "num":
        return e[1];
      case "const":
        return e[1] === "pi" ? Math.PI : Infinity;
      case "scalar":
        return this.scalar(e[1]);
      case "idx":
        return at[e[1]];
      case "ref":
        return this.cell(e, at).value;
      case "neg":
        return -of(e[1]);
      case "add":
        return (e.slice(1) as Expr[]).map(of).reduce((total, term) => total + term);
      case "mul":
        return (e.slice(1) as Expr[]).map(of).reduce((total, factor) => total * factor);
      case "div":
        return this.quotient(e[1], e[2], at);
      case "pow":
        return power(of(e[1]), of(e[2]));
      case "fn":
        return this.call(e[1], e.slice(2) as Expr[], at);
      case "cond":
        return of(this.truth(e[1], at) ? e[2] : e[3]);
      case "reduce":
        return this.reduction(e, at);
      default:
        return this.truth(e, at) ? 1 : 0;
    }
  }

  /** Whether the condition `e` holds; `and` and `or` stop at the first part that decides. */
  truth(e: Expr, at: At): boolean {
    if (e[0] === "cmp") return compare(e[1], this.number(e[2], at), this.number(e[3], at));
    if (e[0] !== "bool") return this.number(e, at) !== 0;
    const args = e.slice(2) as Expr[];
    if (e[1] === "not") return !this.truth(args[0], at);
    return e[1] === "and" ? args.every((part) => this.truth(part, at)) : args.some((part) => this.truth(part, at));
  }

  scalar(name: string): number {
    const value = this.more[name] ?? this.source.scalar(name);
    if (value === undefined) throw new EvaluationError(`no value for ${name}`);
    return value;
  }

  /** Which cell `ref` reads (lookups followed) and what stands there. */
  cell(ref: Ref, at: At): { index: number[]; flat: number; value: number } {
    const key = keyOf(ref[1], ref[2]);
    const tensor = this.source.tensor(key);
    if (!tensor) throw new EvaluationError(`no value for ${key}`);
    if (tensor.shape.length !== ref[3].length) {
      throw new EvaluationError(`${key} has ${tensor.shape.length} axes, read with ${ref[3].length} indices`);
    }
    const index = ref[3].map((part) => Math.trunc(this.number(part, at)));
    index.forEach((k, axis) => {
      if (!(k >= 0 && k < tensor.shape[axis])) throw new EvaluationError(`${key}: index ${k} of an axis of ${tensor.shape[axis]}`);
    });
    const flat = rowMajor(tensor.shape).reduce((total, stride, axis) => total + stride * index[axis], 0);
    return { index, flat, value: tensor.data[flat] };
  }

  /** The positions that a reduction runs over, last letter fastest, its filter applied. */
  *steps(e: Reduce, at: At): Generator<At> {
    const [, , , loops, where] = e;
    const sizes = loops.map(([, dimension]) => this.scalar(dimension));
    const here = sizes.map(() => 0);
    if (sizes.some((size) => size < 1)) return;
    for (;;) {
      const inner = { ...at, ...Object.fromEntries(loops.map(([letter], k) => [letter, here[k]])) };
      if (where === null || this.truth(where, inner)) yield inner;
      let k = here.length - 1;
      for (; k >= 0; k--) {
        here[k] += 1;
        if (here[k] < sizes[k]) break;
        here[k] = 0;
      }
      if (k < 0) return;
    }
  }

  /** How many positions a reduction runs over, filter or not: what a mean divides by. */
  count(e: Reduce): number {
    return e[3].reduce((total, [, dimension]) => total * this.scalar(dimension), 1);
  }

  private reduction(e: Reduce, at: At): number {
    let total = e[1] === "max" ? -Infinity : 0;
    for (const inner of this.steps(e, at)) {
      const value = this.number(e[2], inner);
      total = e[1] === "max" ? (value > total ? value : total) : total + value;
    }
    return e[1] === "mean" ? total / this.count(e) : total;
  }

  private quotient(over: Expr, under: Expr, at: At): number {
    const total = exponentialSum(under);
    if (total === null || over[0] !== "fn" || over[1] !== "exp") return this.number(over, at) / this.number(under, at);
    const largest = this.largestExponent(total, at);
    return Math.exp(this.number(over[2] as Expr, at) - largest) / this.exponentials(total, at, largest);
  }

  /** The largest exponent in a sum of exponentials. */
  largestExponent(total: Reduce, at: At): number {
    let largest = -Infinity;
    for (const inner of this.steps(total, at)) largest = Math.max(largest, this.number(exponentOf(total), inner));
    if (largest === -Infinity) throw new EvaluationError("a softmax over a row in which nothing is allowed");
    return largest;
  }

  private exponentials(total: Reduce, at: At, largest: number): number {
    let result = 0;
    for (const inner of this.steps(total, at)) result += Math.exp(this.number(exponentOf(total), inner) - largest);
    return result;
  }

  private call(name: string, args: readonly Expr[], at: At): number {
    const total = name === "ln" ? exponentialSum(args[0]) : null;
    if (total !== null) {
      const largest = this.largestExponent(total, at);
      return largest + Math.log(this.exponentials(total, at, largest));
    }
    const numbers = args.map((part) => this.number(part, at));
    if (name === "max") return numbers.reduce((a, b) => (b > a ? b : a));
    if (name === "min") return numbers.reduce((a, b) => (b < a ? b : a));
    return UNARY[name](numbers[0]);
  }
}
