/**
 * How large rounding errors of a definition can be: its magnitude tree, written in the language of definitions itself.
 *
 * Every operand becomes its absolute value and every minus a plus; functions enter with their first-order error. A cell
 * whose value is below `2^-53 * magnitude` is zero up to rounding.
 */
import type { Expr } from "../data/types.ts";
import { children, logSumExp, renameLetter, softmaxLetter } from "./tree.ts";

const abs = (e: Expr): Expr => ["fn", "abs", e];
const INFINITY: Expr = ["const", "inf"];
const ONE: Expr = ["num", 1];
/** `e` where it is finite, 0 elsewhere. */
const finite = (e: Expr): Expr => ["cond", ["cmp", "<", abs(e), INFINITY], e, ["num", 0]];

/** The slope of each function, as an expression of its argument. */
const SLOPE: Readonly<Record<string, (x: Expr) => Expr>> = {
  exp: (x) => ["fn", "exp", x],
  ln: (x) => ["div", ONE, x],
  sqrt: (x) => ["div", ["num", 0.5], ["fn", "sqrt", x]],
  sin: (x) => ["fn", "cos", x],
  cos: (x) => ["fn", "sin", x],
  tanh: (x) => ["add", ONE, ["neg", ["pow", ["fn", "tanh", x], ["num", 2]]]],
  erf: (x) => ["mul", ["num", 2 / Math.sqrt(Math.PI)], ["fn", "exp", ["neg", ["pow", x, ["num", 2]]]]],
  abs: () => ONE,
};

/** The magnitude tree of `e`. `sizeOf` finds the dimension of a letter that is free in `e`. */
export function magnitudeOf(e: Expr, dimensionOf: (letter: string) => string): Expr {
  const of = (part: Expr): Expr => magnitudeOf(part, dimensionOf);
  switch (e[0]) {
    case "neg":
      return of(e[1]);
    case "add":
    case "mul":
      return [e[0], ...(e.slice(1) as Expr[]).map(of)];
    case "div": {
      const letter = softmaxLetter(e);
      if (letter !== null) return softmaxMagnitude(e, letter, dimensionOf);
      return ["div", ["mul", of(e[1]), of(e[2])], ["pow", abs(e[2]), ["num", 2]]];
    }
    case "pow":
      return ["pow", of(e[1]), abs(e[2])];
    case "cond":
      return ["cond", e[1], of(e[2]), of(e[3])];
    case "fn": {
      const stable = logSumExp(e);
      if (stable) return ["add", ONE, ["reduce", "max", finite(abs(stable.f)), stable.loops, null]];
      if (e[1] === "min" || e[1] === "max") return ["fn", "max", ...(children(e).map(of))];
      return ["add", abs(e), ["mul", abs(SLOPE[e[1]](e[2])), of(e[2])]];
    }
    case "reduce": {
      const inner = new Map(e[3]);
      const within = (letter: string): string => inner.get(letter) ?? dimensionOf(letter);
      return ["reduce", e[1], magnitudeOf(e[2], within), e[3], e[4]];
    }
    default:
      return abs(e);
  }
}

/** A softmax is computed from `f - max f`, whose rounding enters its exponential. */
function softmaxMagnitude(e: Expr & ["div", ...unknown[]], letter: string, dimensionOf: (letter: string) => string): Expr {
  const over = e[1] as Extract<Expr, ["fn", ...unknown[]]>;
  const f = over[2] as Expr;
  const bound = freshLetter(letter, f);
  const largest: Expr = ["reduce", "max", renameLetter(f, letter, bound), [[bound, dimensionOf(letter)]], null];
  const below = abs(["add", f, ["neg", largest]]);
  const slack: Expr = ["add", magnitudeOf(f, dimensionOf), ["neg", abs(f)]];
  return ["cond", ["cmp", ">", e as Expr, ["num", 0]], ["mul", e as Expr, ["add", ONE, below, slack]], ["num", 0]];
}

function freshLetter(like: string, inside: Expr): string {
  const taken = JSON.stringify(inside);
  let number = 2;
  while (taken.includes(`"${like}${number}"`)) number += 1;
  return `${like}${number}`;
}

