import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Header } from "../src/data/types.ts";
import { Engine } from "../src/notation/engine.ts";

const { header, tensors } = JSON.parse(readFileSync(new URL("../fixtures/toy24.json", import.meta.url), "utf8")) as {
  header: Header;
  tensors: Record<string, (number | null)[]>;
};
const recorded = new Map(Object.entries(tensors).map(([key, cells]) => [key, Float64Array.from(cells, (x) => x ?? -Infinity)]));

function toy(): Engine {
  const engine = new Engine(header, recorded);
  engine.recompute();
  return engine;
}

/** The largest difference, where both are finite; infinite where only one is. */
function difference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let worst = 0;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) worst = Math.max(worst, Math.abs(a[k] - b[k]));
  return worst;
}

describe("the 24-parameter model", () => {
  test("every recorded tensor is recomputed to within 1e-15", () => {
    const engine = toy();
    for (const [key, cells] of recorded) {
      expect(engine.has(key), key).toBe(true);
      expect(difference(engine.value(key), cells), key).toBeLessThanOrEqual(1e-15);
    }
  });

  test("an edit changes what depends on it, and reset takes it back", () => {
    const engine = toy();
    const before = engine.value("loss.L")[0];
    engine.setCell("blocks.0.attn.W_Q", 1, 0.7);
    engine.recompute();
    expect(engine.edited()).toBe(true);
    expect(engine.isEdited("blocks.0.attn.W_Q", 1)).toBe(true);
    expect(engine.value("loss.L")[0]).not.toBe(before);
    engine.reset();
    engine.recompute();
    expect(engine.edited()).toBe(false);
    expect(engine.value("loss.L")[0]).toBe(before);
  });

  test("a gradient is the slope of the loss at edited tokens, target and learning rate", () => {
    const engine = toy();
    engine.setTokens([1, 0]);
    engine.setTarget(1, 0);
    engine.setTarget(0, 2);
    engine.setScalar("eta", 0.03);
    engine.recompute();
    for (const id of engine.parameters) {
      const gradient = engine.value(`${id}.grad`).slice();
      gradient.forEach((slope, k) => {
        const at = engine.value(id)[k];
        const loss = [-1e-5, 1e-5].map((step) => {
          engine.setCell(id, k, at + step);
          engine.recompute();
          return engine.value("loss.L")[0];
        });
        engine.setCell(id, k, at);
        engine.recompute();
        expect(Math.abs((loss[1] - loss[0]) / 2e-5 - slope), `${id}[${k}]`).toBeLessThan(1e-9);
      });
    }
  });

  test("the update analysis agrees with the joint update", () => {
    const engine = toy();
    expect(engine.lossAfterOnly(engine.parameters)).toBe(engine.value("loss.L.after")[0]);
    expect(Math.abs(engine.lossAlong(0.1) - engine.value("loss.L.after")[0])).toBeLessThan(1e-15);
    expect(engine.lossAfterOnly([])).toBe(engine.value("loss.L")[0]);
    const { loss, different } = engine.sequential();
    expect(loss).not.toBe(engine.value("loss.L.after")[0]);
    expect(different).not.toContain("head.U");
    expect(different.length).toBeGreaterThan(0);
    expect(engine.lossAlong(1e6)).toSatisfy(Number.isFinite);
  });

  test("values that cannot be are refused", () => {
    const engine = toy();
    expect(() => engine.setCell("blocks.0.attn.W_Q", 0, NaN)).toThrow(RangeError);
    expect(() => engine.setCell("blocks.0.attn.W_Q", 2, 1)).toThrow(RangeError);
    expect(() => engine.setCell("blocks.0.attn.S", 0, 1)).toThrow(RangeError);
    expect(() => engine.setScalar("eta", -1)).toThrow(RangeError);
    expect(() => engine.setTokens([0, 3])).toThrow(RangeError);
    expect(() => engine.setTarget(1, null)).toThrow(RangeError);
  });
});
