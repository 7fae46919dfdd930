/** The array evaluator against the evaluator of one cell, on forms that the conformance vectors do not hold. */
import { describe, expect, test } from "vitest";
import type { Axis, Expr } from "../src/data/types.ts";
import { Pool, cells } from "../src/notation/arrays.ts";
import { erf } from "../src/notation/erf.ts";
import { EvaluationError, compile } from "../src/notation/evaluate.ts";
import { magnitudeOf } from "../src/notation/magnitude.ts";
import { Store, keyOf } from "../src/notation/program.ts";
import { ScalarEvaluator } from "../src/notation/scalar.ts";

const SIZES: Record<string, number> = { n: 3, H: 2, d: 5, N: 4 };
const SIZE_OF: Record<string, string> = { i: "n", j: "n", m: "n", h: "H", r: "d", q: "d", w: "N" };
const at = (name: string, letters: string): Expr => ["ref", name, "", [...letters].map((letter): Expr => ["idx", letter])];
const sum = (body: Expr, letters: string, where: Expr | null = null): Expr =>
  ["reduce", "sum", body, [...letters].map((letter): [string, string] => [letter, SIZE_OF[letter]]), where];

/** Numbers that look random and are the same each time. */
function storeOf(shapes: Record<string, string>, given: Record<string, number[]> = {}): Store {
  const store = new Store(SIZES);
  let seed = 1;
  for (const [name, letters] of Object.entries(shapes)) {
    const { data } = store.make(name, [...letters].map((letter) => SIZES[SIZE_OF[letter]]));
    data.forEach((_, k) => {
      seed = (seed * 48271) % 2147483647;
      data[k] = given[name]?.[k] ?? seed / 1073741823.5 - 1;
    });
  }
  return store;
}

function evaluated(expr: Expr, letters: string, store: Store): Float64Array {
  const axes = [...letters].map((letter): Axis => [letter, SIZE_OF[letter]]);
  const out = new Float64Array(cells(axes.map(([, size]) => SIZES[size])));
  const operands = { tensor: (id: string, face: string) => store.get(keyOf(id, face)), scalar: (name: string) => store.scalar(name) };
  for (const step of compile(expr, axes, out, false, operands, new Pool())) step();
  return out;
}

function cellByCell(expr: Expr, letters: string, store: Store): number[] {
  const evaluator = new ScalarEvaluator({ tensor: (key) => store.tensors.get(key), scalar: (name) => store.find(name)?.[0] });
  let places: Record<string, number>[] = [{}];
  for (const letter of letters) {
    places = places.flatMap((place) => Array.from({ length: SIZES[SIZE_OF[letter]] }, (_, k) => ({ ...place, [letter]: k })));
  }
  return places.map((place) => evaluator.number(expr, place));
}

const FORMS: [name: string, expr: Expr, letters: string][] = [
  ["a product of three over two letters", sum(["mul", at("Q", "hir"), at("K", "hjr"), at("x", "ij")], "jr"), "hi"],
  ["a factor without a loop letter", sum(["mul", at("x", "ij"), at("v", "i"), at("v", "j")], "j"), "i"],
  ["a letter that one factor has alone", sum(["mul", at("Q", "hir"), at("v", "i")], "hr"), "i"],
  ["a letter that no factor has", sum(at("v", "i"), "r"), "i"],
  ["a minus inside a product", sum(["mul", ["neg", at("x", "ij")], at("v", "j")], "j"), "i"],
  ["an operand that lies transposed", sum(["mul", at("x", "ji"), at("x", "mj")], "j"), "im"],
  ["a diagonal", sum(at("x", "ii"), "i"), ""],
  ["a letter as a number", ["mul", ["idx", "i"], at("v", "i")], "i"],
  ["a filter that is no equality", sum(at("x", "ij"), "j", ["cmp", "<=", ["idx", "j"], ["idx", "i"]]), "i"],
  ["a filter by a table", sum(at("Q", "hir"), "hi", ["cmp", "==", at("t", "i"), ["idx", "w"]]), "wr"],
  ["a filter by a table, read from the right", sum(at("Q", "hir"), "hi", ["cmp", "==", ["idx", "w"], at("t", "i")]), "rw"],
  ["a filter whose letter the body reads too", sum(["mul", at("E", "wr"), at("v", "i")], "i", ["cmp", "==", at("t", "i"), ["idx", "w"]]), "wr"],
  ["a lookup that shares a letter", ["ref", "x", "", [["idx", "i"], at("s", "i")]], "i"],
  ["a lookup in the middle", ["ref", "Q", "", [["idx", "h"], at("s", "i"), ["idx", "r"]]], "ihr"],
  ["a truth value that is not 1", ["cond", at("t", "i"), at("v", "i"), ["num", 7]], "i"],
  ["a largest value under a filter", ["reduce", "max", at("x", "ij"), [["j", "n"]], ["cmp", ">", at("x", "ij"), ["num", 0]]], "i"],
  ["a mean over two letters", ["reduce", "mean", at("Q", "hir"), [["h", "H"], ["r", "d"]], null], "i"],
  ["the largest and smallest of three", ["fn", "max", ["fn", "min", at("v", "i"), ["num", 0.1]], ["num", -0.5], at("v", "i")], "i"],
  ["a scalar everywhere", ["scalar", "d"], "ir"],
];

describe.each(FORMS)("%s", (_, expr, letters) => {
  const tables = { t: [2, 0, 2], s: [1, 1, 0] };
  const store = storeOf({ Q: "hir", K: "hir", x: "ij", v: "i", E: "wr", t: "i", s: "i" }, tables);

  test("is the same from arrays and cell by cell", () => {
    const wanted = cellByCell(expr, letters, store);
    evaluated(expr, letters, store).forEach((x, k) =>
      Number.isFinite(wanted[k]) ? expect(x).toBeCloseTo(wanted[k], 13) : expect(x).toBe(wanted[k]),
    );
  });

  test("has a magnitude that is no smaller", () => {
    const dimension = (letter: string): string => SIZE_OF[letter];
    const magnitude = evaluated(magnitudeOf(expr, dimension), letters, store);
    evaluated(expr, letters, store).forEach((x, k) => Number.isFinite(x) && expect(magnitude[k]).toBeGreaterThanOrEqual(Math.abs(x) * (1 - 1e-12)));
  });
});

test("a lookup out of range is refused, and does not matter in a branch that is not taken", () => {
  const store = storeOf({ x: "ij", y: "i" }, { y: [0, -100, 2] });
  const lookup: Expr = ["ref", "x", "", [["idx", "i"], at("y", "i")]];
  expect(() => evaluated(lookup, "i", store)).toThrow(EvaluationError);
  const guarded: Expr = ["cond", ["cmp", ">=", at("y", "i"), ["num", 0]], lookup, ["num", 0]];
  expect([...evaluated(guarded, "i", store)]).toEqual(cellByCell(guarded, "i", store));
});

test("softmax and log-sum-exp do not overflow, and a row without anything allowed is an error", () => {
  const store = storeOf({ x: "ij" }, { x: [1e4, 1e4, -Infinity, -2e4, -2e4, -2e4, 0, 800, -800] });
  const soft: Expr = ["div", ["fn", "exp", at("x", "ij")], sum(["fn", "exp", at("x", "im")], "m")];
  expect([...evaluated(soft, "ij", store)]).toEqual([0.5, 0.5, 0, 1 / 3, 1 / 3, 1 / 3, 0, 1, 0]);
  const logs = evaluated(["fn", "ln", sum(["fn", "exp", at("x", "im")], "m")], "i", store);
  expect(logs[0]).toBeCloseTo(1e4 + Math.LN2, 9);
  expect(logs[1]).toBeCloseTo(-2e4 + Math.log(3), 9);
  const closed = storeOf({ x: "ij" }, { x: Array<number>(9).fill(-Infinity) });
  expect(() => evaluated(soft, "ij", closed)).toThrow(EvaluationError);
});

test("erf is right to an ulp on each of its intervals", () => {
  const known = [
    [0, 0], [1e-10, 1.1283791670955126e-10], [0.5, 0.5204998778130465], [0.8437, 0.7671979750524579],
    [1, 0.8427007929497149], [1.5, 0.9661051464753108], [-2.5, -0.999593047982555], [3.5, 0.9999992569016276], [6.5, 1],
  ];
  for (const [x, value] of known) expect(Math.abs(erf(x) - value)).toBeLessThanOrEqual(2 ** -52 * Math.abs(value));
});
