import { readFileSync } from "node:fs";
import katex from "katex";
import { describe, expect, test } from "vitest";
import type { Header } from "../src/data/types.ts";
import { Engine } from "../src/notation/engine.ts";
import { exprLatex } from "../src/notation/latex.ts";
import { frameOf } from "../src/notation/plain.ts";
import { styleOf } from "../src/notation/symbols.ts";

const { header, tensors } = JSON.parse(readFileSync(new URL("../fixtures/toy24.json", import.meta.url), "utf8")) as {
  header: Header;
  tensors: Record<string, (number | null)[]>;
};
const recorded = new Map(Object.entries(tensors).map(([key, cells]) => [key, Float64Array.from(cells, (x) => x ?? -Infinity)]));
const engine = new Engine(header, recorded);
engine.recompute();

/** LaTeX without the marks of operands. */
const bare = (tex: string): string => {
  let text = tex;
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replace(/\\htmlData\{op=\d+\}\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}/g, "$1");
  }
  return text;
};

const decoder = JSON.parse(readFileSync(new URL("../fixtures/decoder.json", import.meta.url), "utf8")) as Header;

describe.each([["the 24-parameter model", header], ["a decoder with everything", decoder]])("formulas of %s", (_, read) => {
  const style = styleOf(read);

  test("are written in the page as in Python", () => {
    for (const { target, face, letters, expr, adds, latex } of read.statements) {
      const [left] = style.cell(target, face, letters.map(([letter]) => letter));
      const several = read.statements.filter((s) => s.target === target && s.face === face).length > 1;
      expect(`${left} ${adds && several ? "\\mathrel{+}=" : "="} ${exprLatex(expr, style, frameOf())}`).toBe(latex.index);
    }
  });

  test("have the symbols that they have in Python", () => {
    for (const { id, latex } of read.quantities) expect(style.name(id)).toBe(latex);
  });
});

describe("the arithmetic of a cell", () => {
  const all = engine.keys.flatMap((key) => [...engine.value(key).keys()].map((flat) => [key, flat] as const));
  const everyCell = all.filter((_, k) => k % Math.ceil(all.length / 1000) === 0);

  test("gives the value of the cell, from operands that hold what they say", () => {
    for (const [key, flat] of everyCell) {
      const explained = engine.arithmetic(key, flat);
      const value = engine.value(key)[flat];
      if (Number.isFinite(value)) expect(Math.abs(explained.value - value), key).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(value)));
      else expect(explained.value, key).toBe(value);
      for (const { key: of, flat: at, value: x } of explained.operands) expect(engine.value(of)[at]).toBe(x);
    }
  });

  test("is LaTeX that KaTeX draws, its links all pointing to operands", () => {
    for (const [key, flat] of everyCell) {
      const explained = engine.arithmetic(key, flat);
      const texts = explained.via.flatMap(({ symbolic, numeric, where, conditions, notes }) => [
        symbolic, numeric, ...where.flatMap((sum) => [sum.symbolic, sum.numeric]), ...conditions.map(({ tex }) => tex), ...notes.map(({ tex }) => tex),
      ]);
      for (const text of [explained.tex, ...texts]) {
        const trust = ({ command }: { command: string }): boolean => command === "\\htmlData";
        expect(() => katex.renderToString(text, { trust, strict: (code) => (code === "htmlExtension" ? "ignore" : "error") }), text).not.toThrow();
        for (const [, n] of text.matchAll(/op=(\d+)/g)) expect(Number(n)).toBeLessThan(explained.operands.length);
      }
    }
  });

  test("of the attention coefficient reads as in the notes", () => {
    const explained = engine.arithmetic("blocks.0.attn.A", 2);
    expect(explained.entry).toBe("a_21");
    expect(explained.python).toBe("blocks.0.attn.A[0,1,0]");
    expect(bare(explained.via[0].symbolic)).toBe("\\frac{e^{S_{21}}}{\\sum_{m=1}^{n} e^{S_{2m}}}");
    expect(bare(explained.via[0].numeric)).toBe("\\frac{e^{1}}{3.718282}");
    expect(explained.via[0].where[0]).toMatchObject({ terms: 2, folded: 0, zeros: 0 });
    expect(bare(explained.via[0].where[0].numeric)).toBe("e^{1} + e^{0}");
    expect(explained.text("en")).toEqual([
      "A[0,1,0]  (a_21)",
      "A[0,1,0] = exp(S[0,1,0]) / (Σ_m exp(S[0,1,m]))",
      "  = exp(1) / 3.718282 = 0.731059",
      "  where Σ_m exp(S[0,1,m]) = exp(1) + exp(0) = 3.718282",
    ]);
  });

  test("of a sum with a filter says where its terms stand", () => {
    const embedding = new Engine(header, recorded);
    embedding.setTokens([0, 0]);
    embedding.recompute();
    const [path] = embedding.arithmetic("embed.E.grad", 0).via;
    expect(bare(path.symbolic)).toBe("\\sum_{i:\\,t_i = 1} \\bar X_{i1}");
    expect(path.places).toBe("i = 1, 2");
    expect(engine.arithmetic("embed.E.grad", 2).via[0].places).toBe("i = 2");
    expect(engine.arithmetic("blocks.0.attn.A", 2).via[0].where[0].places).toBe("");
  });

  test("of a gradient names each path", () => {
    const explained = engine.arithmetic("embed.X.grad", 2);
    expect(explained.via.map(({ consumer }) => consumer).sort()).toEqual(
      ["blocks.0.R", "blocks.0.attn.K", "blocks.0.attn.Q", "blocks.0.attn.V"].sort(),
    );
    expect(explained.via.every(({ statement }) => header.statements[statement].target === "embed.X")).toBe(true);
  });

  test("of a parameter is that it is given", () => {
    const [parameter] = engine.parameters;
    expect(engine.arithmetic(parameter, 0)).toMatchObject({ given: true, via: [], operands: [] });
    expect(engine.arithmetic(`${parameter}.new`, 0).given).toBe(false);
    expect(() => engine.arithmetic(parameter, 10 ** 9)).toThrow(RangeError);
  });
});
