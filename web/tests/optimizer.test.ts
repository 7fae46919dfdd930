import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Header } from "../src/data/types.ts";
import { Engine, NotRecorded } from "../src/notation/engine.ts";
import { structureOf } from "../src/state/structure.ts";

interface Fixture {
  header: Header;
  recorded: Map<string, Float64Array>;
}

function fixture(name: string): Fixture {
  const { header, tensors } = JSON.parse(readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), "utf8")) as {
    header: Header;
    tensors: Record<string, (number | null)[]>;
  };
  return { header, recorded: new Map(Object.entries(tensors).map(([key, cells]) => [key, Float64Array.from(cells, (x) => x ?? -Infinity)])) };
}

const { header, recorded } = fixture("adamw");

function engine(): Engine {
  const made = new Engine(header, recorded);
  made.recompute();
  return made;
}

describe("the 24-parameter model under AdamW", () => {
  test("every recorded tensor is recomputed, the lines of the optimizer too", () => {
    const adamw = engine();
    for (const key of ["embed.E.moment1.new", "head.U.direction", "optimizer.norm", "optimizer.rate", "head.U.clipped"]) {
      expect(recorded.has(key), key).toBe(true);
    }
    for (const [key, cells] of recorded) {
      const largest = Math.max(1, ...cells.map(Math.abs).filter(Number.isFinite));
      adamw.value(key).forEach((x, k) => {
        if (x !== cells[k]) expect(Math.abs(x - cells[k]), `${key}:${k}`).toBeLessThanOrEqual(1e-14 * largest);
      });
    }
  });

  test("an engine made from a trace starts from its moments", () => {
    const adamw = Engine.of({ header, keys: [...recorded.keys()], tensor: (key) => recorded.get(key) });
    adamw.recompute();
    expect([...adamw.value("head.U.moment2")]).toEqual([...(recorded.get("head.U.moment2") ?? [])]);
    expect(adamw.value("loss.L.after")[0]).toBeCloseTo(recorded.get("loss.L.after")?.[0] ?? NaN, 13);
  });

  test("it knows parameters from moments, and AdamW from plain gradient descent", () => {
    const adamw = engine();
    expect([...adamw.parameters].sort()).toEqual(header.update?.groups.map(({ id }) => id).sort());
    expect(adamw.plainDescent).toBe(false);
  });

  test("the analysis of the update is the one that was recorded", () => {
    const adamw = engine();
    const told = header.update;
    if (!told) throw new Error("the fixture has no update");
    for (const { id, predicted, alone } of told.groups) {
      expect(adamw.predicted(id)).toBeCloseTo(predicted, 14);
      expect(adamw.lossAfterOnly([id]) - told.loss).toBeCloseTo(alone, 13);
    }
    told.line.eta.forEach((eta, k) => expect(adamw.lossAlong(eta), `at ${eta}`).toBeCloseTo(told.line.loss[k], 12));
    expect(adamw.slope() * told.eta).toBeCloseTo(told.predicted, 13);
    const { loss, different } = adamw.sequential();
    expect(loss).toBeCloseTo(told.sequential.loss, 13);
    expect([...different].sort()).toEqual([...told.sequential.different].sort());
  });

  test("looking at another learning rate or the wrong order changes no number", () => {
    const adamw = engine();
    const before = new Map(adamw.keys.map((key) => [key, adamw.value(key).slice()]));
    adamw.lossAlong(3);
    adamw.slope();
    adamw.sequential();
    for (const [key, cells] of before) expect([...adamw.value(key)], key).toEqual([...cells]);
    expect(adamw.edited()).toBe(false);
  });

  test("an edit moves the moments after the step and leaves those before it", () => {
    const adamw = engine();
    const after = adamw.value("head.U.moment1.new").slice();
    adamw.setCell("head.U", 0, 2);
    adamw.recompute();
    expect([...adamw.value("head.U.moment1.new")]).not.toEqual([...after]);
    expect([...adamw.value("head.U.moment1")]).toEqual([...(recorded.get("head.U.moment1") ?? [])]);
  });

  test("every line of the optimizer explains its number, and all of them are one part of the way", () => {
    const adamw = engine();
    const lines = header.quantities.filter(({ kind }) => kind === "optimizer state");
    for (const { id } of lines) {
      const told = adamw.arithmetic(id, 0);
      if (!told.given) expect(told.value, id).toBeCloseTo(adamw.value(id)[0], 12);
    }
    const parts = structureOf(header).parts.filter(({ quantities }) => quantities.some(({ kind }) => kind === "optimizer state"));
    expect(parts.map(({ id }) => id)).toEqual(["optimizer"]);
  });
});

describe("a page of it that leaves numbers out and recomputes nothing", () => {
  const written = new Set(header.statements.map(({ target, face }) => (face ? `${target}.${face}` : target)));
  const moved = (key: string): boolean =>
    key.endsWith(".new") || (header.quantities.find(({ id }) => id === key)?.kind === "optimizer state" && written.has(key));
  const part = { ...header, left_out: { limit: 1, needed: 2 } };

  function without(left: (key: string) => boolean): Engine {
    return new Engine(part, new Map([...recorded].filter(([key]) => !left(key))));
  }

  test("reads the update off gradients and moments, without one lost moment only what depends on it", () => {
    const adamw = without((key) => key === "head.U.moment1" || moved(key));
    expect(adamw.pace).toBe("recorded");
    const lost = ["head.U.moment1", "head.U.moment1.new", "head.U.moment1_hat", "head.U.direction", "head.U.new"];
    for (const [key, cells] of recorded) {
      expect(adamw.holds(key), key).toBe(!lost.includes(key));
      if (lost.includes(key)) expect(() => adamw.value(key), key).toThrow(NotRecorded);
      else adamw.value(key).forEach((x, k) => x !== cells[k] && expect(x, `${key}:${k}`).toBeCloseTo(cells[k], 14));
    }
  });

  test("without one gradient nothing that is clipped with all of them is told", () => {
    const adamw = without((key) => key === "embed.E.grad" || key === "embed.E.moment1" || moved(key));
    for (const key of ["optimizer.norm", "optimizer.kept", "head.U.clipped", "head.U.new"]) expect(adamw.holds(key), key).toBe(false);
    expect(adamw.holds("head.U.squares")).toBe(true);
    expect(adamw.slope()).toBeNaN();
  });

  test("takes no edits, and says nothing of a slope that it cannot know", () => {
    const adamw = without((key) => key === "head.U.moment1");
    expect(() => adamw.setScalar("eta", 1)).toThrow("too large");
    expect(() => adamw.setCell("embed.E.moment1", 0, 1)).toThrow("too large");
    expect(adamw.slope()).toBeNaN();
    expect(adamw.edited()).toBe(false);
  });

  test("a moment that is missing from a page that leaves nothing out is an error", () => {
    const rest = new Map([...recorded].filter(([key]) => key !== "head.U.moment1"));
    expect(() => new Engine(header, rest)).toThrow("head.U.moment1");
  });
});

describe("the 24-parameter model under plain gradient descent", () => {
  const plain = fixture("toy24");

  test("is told from every other optimizer by its parameters alone", () => {
    expect(new Engine(plain.header, plain.recorded).plainDescent).toBe(true);
    const [one, other] = plain.header.statements.filter(({ face }) => face === "new");
    const statements = plain.header.statements.map((s) => (s === one ? { ...one, expr: other.expr } : s));
    expect(new Engine({ ...plain.header, statements }, plain.recorded).plainDescent).toBe(false);
  });

  test("a page that leaves numbers out still knows its slope: minus the squared norm of the gradient", () => {
    const part = { ...plain.header, left_out: { limit: 1, needed: 2 } };
    const recorded = new Map([...plain.recorded].filter(([key]) => key !== "head.U"));
    const engine = new Engine(part, recorded);
    expect(engine.pace).toBe("recorded");
    const told = plain.header.update;
    if (!told) throw new Error("the fixture has no update");
    expect(engine.slope() * told.eta).toBeCloseTo(told.predicted, 13);
    expect(engine.slope()).toBeLessThan(-1);
  });
});
