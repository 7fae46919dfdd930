import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Bilingual, Header } from "../src/data/types.ts";
import { TEXTS } from "../src/i18n.ts";
import { Engine } from "../src/notation/engine.ts";
import { noteFor } from "../src/notes.ts";
import { indexOf, flatOf } from "../src/state/keys.ts";
import { readersOf, wayToLoss, type Surroundings } from "../src/state/readers.ts";
import { planeOf } from "../src/state/slices.ts";
import { structureOf } from "../src/state/structure.ts";
import { full, parseNumber, picture, short } from "../src/state/text.ts";
import { ticks } from "../src/views/chart.tsx";
import { walksFor } from "../src/walks.ts";

const { header, tensors } = JSON.parse(readFileSync(new URL("../fixtures/toy24.json", import.meta.url), "utf8")) as {
  header: Header;
  tensors: Record<string, (number | null)[]>;
};

function toy(): Surroundings {
  const leaves = new Map(
    Object.entries(tensors).map(([key, cells]) => [key, Float64Array.from(cells, (x) => x ?? -Infinity)]),
  );
  const engine = new Engine(header, leaves);
  engine.recompute();
  return { header, engine, structure: structureOf(header) };
}

describe("who reads a number", () => {
  test("every operand of every number names that number among its readers", () => {
    const around = toy();
    for (const key of around.engine.keys) {
      around.engine.value(key).forEach((_, flat) => {
        for (const operand of around.engine.arithmetic(key, flat).operands) {
          const readers = readersOf(operand, around).filter((each) => each.key === key);
          expect(
            readers.some((each) => each.cells.includes(flat)),
            `${operand.key}:${operand.flat} -> ${key}:${flat}`,
          ).toBe(true);
        }
      });
    }
  });

  test("a masked score is read by nobody's gradient and a token row by its own position alone", () => {
    const around = toy();
    const readers = readersOf({ key: "embed.E", flat: 2 }, around).flatMap(({ key, cells }) =>
      cells.map((flat) => `${key}:${flat}`),
    );
    expect(readers).toEqual(["embed.X:2", "embed.E.new:2"]);
    expect(readersOf({ key: "embed.E", flat: 4 }, around).map(({ key }) => key)).toEqual(["embed.E.new"]);
    expect(readersOf({ key: "blocks.0.attn.A.grad", flat: 1 }, around).map(({ cells }) => cells)).toEqual([[0]]);
  });

  test("the way to the loss goes by numbers that the loss depends on", () => {
    const around = toy();
    const way = wayToLoss({ key: "embed.E", flat: 0 }, around).map(({ key, flat }) => `${key}:${flat}`);
    expect(way).toContain("blocks.0.attn.V:0");
    expect(way.at(-1)).toBe("loss.L:0");
  });
});

describe("how numbers and tokens are written", () => {
  test.each([
    [0.731058, 6, "0.731058"],
    [-1, 6, "−1"],
    [-0, 6, "0"],
    [-Infinity, 6, "−∞"],
    [NaN, 6, "NaN"],
    [0.7, 6, "0.7"],
    [0.000017845, 6, "1.784·10⁻⁵"],
    [0.0004, 3, "4.000·10⁻⁴"],
    [123456789.5, 6, "1.235·10⁸"],
    [1 / 3, 3, "0.333"],
  ])("%d with %d decimals is %s", (x, digits, text) => expect(short(x, digits)).toBe(text));

  test("a number in full can be read back", () => {
    for (const x of [0.1 + 0.2, -1e-17, 1e300, 5e-324, 123456789.123]) expect(parseNumber(full(x))).toBe(x);
  });

  test.each(["", " ", "abc", "1,5", "0x10", "Infinity", "NaN", "1e999", "--1", "1 2", "٣"])(
    "%j is no number",
    (text) => {
      expect(parseNumber(text)).toBeNull();
    },
  );

  test("nothing of a token is invisible", () => {
    expect(picture("\u0000\u001b\u007f\n")).toBe("␀␛␡␊");
    expect(picture("\u202eabc\u200b\ufeff\ud800")).toBe("⟨U+202E⟩abc⟨U+200B⟩⟨U+FEFF⟩⟨U+D800⟩");
    expect(picture(" a b ")).toBe("␣a b␣");
    expect(picture("")).toBe("∅");
    expect(picture("患者😀")).toBe("患者😀");
  });

  test("ticks are round and inside", () => {
    expect(ticks(0, 2)).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(ticks(1, 1)).toEqual([1]);
    for (const at of ticks(-0.37, 0.912)) expect(at >= -0.37 && at <= 0.912).toBe(true);
  });
});

describe("tables", () => {
  test("every cell of a tensor has its place in exactly one plane", () => {
    const { engine } = toy();
    for (const quantity of header.quantities) {
      const shape = engine.shape(quantity.id);
      const heads = planeOf(quantity, shape, 0).through?.size ?? 1;
      const seen = new Set<number>();
      for (let head = 0; head < heads; head++) {
        const plane = planeOf(quantity, shape, head);
        for (let row = 0; row < plane.rows; row++) {
          for (let column = 0; column < plane.columns; column++) {
            expect(plane.place(plane.flat(row, column))).toEqual({ row, column });
            seen.add(plane.flat(row, column));
          }
        }
      }
      expect(seen.size, quantity.id).toBe(engine.value(quantity.id).length);
    }
  });

  test("index and flat position are each other's inverse", () => {
    for (let flat = 0; flat < 24; flat++) expect(flatOf(indexOf(flat, [2, 3, 4]), [2, 3, 4])).toBe(flat);
  });
});

describe("two languages", () => {
  const pairs: [string, Bilingual][] = [
    ...Object.entries(TEXTS).map(([name, [en, zh]]): [string, Bilingual] => [name, { en, zh }]),
    ...walksFor(header).flatMap((walk) =>
      [walk.title, ...walk.steps.map((step) => step.text)].map((text, k): [string, Bilingual] => [
        `${walk.id} ${k}`,
        text,
      ]),
    ),
    ...structureOf(header).parts.flatMap((part) => {
      const notes = (["forward", "gradient"] as const).flatMap((view) => noteFor(part, view, header) ?? []);
      return [part.title, ...notes.map((note) => note.text)].map((text, k): [string, Bilingual] => [
        `${part.id} ${k}`,
        text,
      ]);
    }),
  ];
  const holes = (text: string): string[] => (text.match(/\{\w+\}|\$[^$]*\$/g) ?? []).sort();

  test("every text says the same in both, with the same words and formulas put in", () => {
    for (const [name, { en, zh }] of pairs) {
      expect(holes(zh), name).toEqual(holes(en));
      expect(zh, name).toMatch(/[\u4e00-\u9fff]/);
      expect(en, name).not.toMatch(/[\u4e00-\u9fff]/);
    }
  });
});
