/** The conformance vectors that Python and the page share: values to 1e-13, lines of text to the letter. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Axis, Expr } from "../src/data/types.ts";
import { arithmetic } from "../src/notation/arithmetic.ts";
import { Pool, cells, rowMajor } from "../src/notation/arrays.ts";
import { textLines } from "../src/notation/cell.ts";
import { compile } from "../src/notation/evaluate.ts";
import { numberText } from "../src/notation/numerals.ts";
import { Store, keyOf } from "../src/notation/program.ts";
import { ScalarEvaluator } from "../src/notation/scalar.ts";

type Spelt = number | "inf" | "-inf" | "nan";

interface Definition {
  letters: Axis[];
  expr: Expr;
  consumer?: string;
}

interface Case extends Partial<Definition> {
  name: string;
  target: string;
  face: string;
  dims: Record<string, number>;
  contributions?: Definition[];
  operands: Record<string, { shape: number[]; values: Spelt[] }>;
  value: Spelt[];
  cells: { index: number[]; lines: string[] }[];
}

const file = new URL("../../src/glassformer/notation/vectors.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as {
  cases: Case[];
  gradients: Case[];
  numbers: { x: Spelt; digits: number | null; text: string }[];
};

const number = (x: Spelt): number => (typeof x === "number" ? x : { inf: Infinity, "-inf": -Infinity, nan: NaN }[x]);

function definitionsOf(data: Case): Definition[] {
  return data.contributions ?? [{ letters: data.letters ?? [], expr: data.expr as Expr }];
}

function storeOf(data: Case): Store {
  const store = new Store(data.dims);
  for (const [name, { shape, values }] of Object.entries(data.operands)) {
    store.make(name, shape).data.set(values.map(number));
  }
  return store;
}

describe.each([...vectors.cases, ...vectors.gradients])("$name", (data) => {
  test("the value agrees to 1e-13", () => {
    const store = storeOf(data);
    const [first] = definitionsOf(data);
    const out = new Float64Array(cells(first.letters.map(([, size]) => data.dims[size])));
    const operands = { tensor: (id: string, face: string) => store.get(keyOf(id, face)), scalar: (name: string) => store.scalar(name) };
    for (const { expr, letters } of definitionsOf(data)) {
      for (const step of compile(expr, letters, out, true, operands, new Pool())) step();
    }
    const wanted = data.value.map(number);
    expect(out.length).toBe(wanted.length);
    const scale = Math.max(1e-300, ...wanted.filter(Number.isFinite).map(Math.abs));
    wanted.forEach((x, k) => {
      if (Number.isFinite(x)) expect(Math.abs(out[k] - x) / scale, `cell ${k}`).toBeLessThanOrEqual(1e-13);
      else expect(out[k], `cell ${k}`).toBe(x);
    });
  });

  test("the lines of its cells are the same", () => {
    const store = storeOf(data);
    const evaluator = new ScalarEvaluator({ tensor: (key) => store.tensors.get(key), scalar: (name) => store.find(name)?.[0] });
    for (const { index, lines } of data.cells) {
      const parts = definitionsOf(data).map(({ expr, letters, consumer }) => {
        const at = Object.fromEntries(letters.map(([letter], axis) => [letter, index[axis]]));
        return { ...arithmetic(expr, at, evaluator), consumer: consumer ?? null };
      });
      const value = parts.map((part) => part.formula.value).reduce((a, b) => a + b);
      expect(textLines({ id: data.target, face: data.face, index, value }, parts, new Map(), "en")).toEqual(lines);
      const [first] = definitionsOf(data);
      const shape = first.letters.map(([, size]) => data.dims[size]);
      const flat = rowMajor(shape).reduce((total, stride, axis) => total + stride * index[axis], 0);
      const wanted = number(data.value[flat]);
      if (Number.isFinite(wanted)) expect(Math.abs(value - wanted)).toBeLessThanOrEqual(1e-13 * Math.max(1, Math.abs(wanted)));
      else expect(value).toBe(wanted);
    }
  });
});

test.each(vectors.numbers)("$x with $digits digits is $text", ({ x, digits, text }) => {
  expect(numberText(number(x), digits)).toBe(text);
});
