/** The book: examples compute as Python does, exercises are judged, addresses bring a reader back. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { agrees, asked, cellsOfTensor, firstWrong, markOf, parseAnswer, programOf, shuffled } from "../src/book/answers.ts";
import { type BookData, type ComputeExercise, type Program, flattened, traceOf } from "../src/book/data.ts";
import { addressText, applyChanges, changesOf, parseAddress } from "../src/book/links.ts";
import { curvePoints, traceOfProgram } from "../src/book/live.ts";
import { askedOf } from "../src/book/pencil-run.tsx";
import { hullOf } from "../src/book/plane.tsx";
import { matrixLatex, matrixSvg } from "../src/book/saving.ts";
import { hitsIn } from "../src/book/search.ts";
import { orderedChapters } from "../src/book/state.ts";
import { BOOK_TEXTS } from "../src/book/texts.ts";
import { Engine } from "../src/notation/engine.ts";
import { styleOf } from "../src/notation/symbols.ts";
import { structureOf } from "../src/state/structure.ts";
import type { Session } from "../src/state/session.ts";

const file = new URL("../fixtures/book.json", import.meta.url);
const { data } = JSON.parse(readFileSync(file, "utf8")) as { data: BookData };
const hull = data.examples["hull"];
const mixing = data.exercises["mixing"] as ComputeExercise;

function engineOf(program: Program): Engine {
  return Engine.of(traceOfProgram(program));
}

describe("a worked example", () => {
  test.each(Object.values(data.examples))("$id computes what Python computed", (example) => {
    const engine = engineOf(example);
    for (const [id, values] of Object.entries(example.values)) {
      flattened(values).forEach((x, flat) => expect(engine.value(id)[flat], `${id}:${flat}`).toBeCloseTo(x, 13));
    }
  });

  test("an edit changes what follows from it, and a reset brings the numbers back", () => {
    const engine = engineOf(hull);
    engine.setCell("ex.S", 0, 0);
    engine.recompute();
    expect([...engine.value("ex.A")]).toEqual([1 / 3, 1 / 3, 1 / 3]);
    expect(engine.value("ex.Z")[0]).toBeCloseTo(4 / 3, 14);
    engine.reset();
    engine.recompute();
    expect([...engine.value("ex.Z")]).toEqual([1, 1]);
  });

  test("only its inputs can be changed", () => {
    const engine = engineOf(hull);
    expect(() => engine.setCell("ex.A", 0, 1)).toThrow();
    expect(traceOfProgram(hull).header.quantities.filter(({ editable }) => editable).map(({ id }) => id)).toEqual(["ex.S", "ex.V"]);
  });

  test("a computed number is explained with its operands", () => {
    const told = engineOf(hull).arithmetic("ex.Z", 0);
    expect(told.value).toBe(1);
    expect(told.operands.map(({ key, flat }) => `${key}:${flat}`)).toEqual(["ex.A:1", "ex.V:2"]);
  });

  test("a curve goes through the numbers that stand, and leaves them as they are", () => {
    const [engine, second] = [engineOf(hull), engineOf(hull)];
    engine.setCell("ex.S", 1, 2);
    engine.recompute();
    const before = [...engine.value("ex.A")];
    const { xs, ys } = curvePoints(hull.curves[0], hull.sliders[0], engine, second, Object.keys(hull.inputs));
    expect([...engine.value("ex.A")]).toEqual(before);
    const middle = xs.indexOf(0);
    expect(ys[0][middle]).toBeCloseTo(1 / (2 + Math.exp(2)), 13);
    expect(ys[0].at(-1)).toBeCloseTo(Math.exp(4) / (Math.exp(4) + Math.exp(2) + 1), 13);
  });

  test("numbers without spelling in JSON are read", () => {
    expect([...flattened([[1, null], ["-inf", "inf"]])]).toEqual([1, -Infinity, -Infinity, Infinity]);
    expect(flattened("nan")[0]).toBeNaN();
    const trace = traceOf({ header: traceOfProgram(hull).header, tensors: { a: { data: [1, "-inf"] }, b: { dtype: "f8", data: "AAAAAAAA8D8=" } } });
    expect([...(trace.tensor("a") ?? [])]).toEqual([1, -Infinity]);
    expect([...(trace.tensor("b") ?? [])]).toEqual([1]);
    expect(trace.tensor("constructor")).toBeUndefined();
  });
});

describe("an exercise", () => {
  test("its numbers follow from the seed, lie between the ends and are whole", () => {
    const drawn = (seed: number): number[] => Object.keys(mixing.draw).flatMap((id) => [...flattened(programOf(mixing, seed).inputs[id])]);
    expect(drawn(7)).toEqual(drawn(7));
    expect(drawn(7)).not.toEqual(drawn(8));
    const seen = new Set<number>();
    for (let seed = 0; seed < 100; seed++) flattened(programOf(mixing, seed).inputs["ex.S"]).forEach((x) => seen.add(x));
    expect([...seen].sort()).toEqual([0, 1, 2]);
  });

  test("it asks for whole quantities and for single cells", () => {
    const engine = engineOf(programOf(mixing, 1));
    expect(asked(engine, mixing.ask).map(({ key, flat }) => `${key}:${flat}`)).toEqual(["ex.A:0", "ex.A:1", "ex.A:2", "ex.Z:0"]);
  });

  test("the computed answers are right, and the first wrong one is told in the order of the definitions", () => {
    const engine = engineOf(programOf(mixing, 1));
    const cells = asked(engine, [...mixing.ask].reverse());
    const right = ({ key, flat }: { key: string; flat: number }): string => engine.value(key)[flat].toPrecision(6);
    const { statements } = mixing.program;
    expect(firstWrong(cells, statements, (cell) => markOf(right(cell), engine.value(cell.key)[cell.flat]))).toBeNull();
    // Both are wrong; the shares come before what is read with them.
    const slip = (cell: { key: string; flat: number }): string =>
      cell.key === "ex.Z" || cell.flat === 2 ? "99" : right(cell);
    const found = firstWrong(cells, statements, (cell) => markOf(slip(cell), engine.value(cell.key)[cell.flat]));
    expect(found).toEqual({ key: "ex.A", flat: 2 });
  });

  test("three significant digits are enough, two are not, and zero is zero", () => {
    expect(agrees(0.731, 0.7310585786)).toBe(true);
    expect(agrees(0.73, 0.7374)).toBe(false);
    expect(agrees(0.001, 0)).toBe(false);
    expect(agrees(-0.5, 0.5)).toBe(false);
  });

  test("fractions and printed minus signs are numbers, other texts are not", () => {
    expect(parseAnswer("1/4")).toBe(0.25);
    expect(parseAnswer(" −2 ")).toBe(-2);
    for (const text of ["", "1/0", "1/", "/2", "1/2/3", "x", "0x10"]) expect(parseAnswer(text), text).toBeNull();
    expect(markOf("x", 1)).toBe("wrong");
    expect(markOf("  ", 1)).toBe("open");
  });

  test("options are shuffled, none is lost", () => {
    expect(shuffled(5, 3).toSorted()).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(Array.from({ length: 40 }, (_, seed) => shuffled(3, seed).join())).size).toBe(6);
  });

  test("what is given is shown where the book does not say what to show", () => {
    const { show: _, ...program } = mixing.program;
    expect(programOf({ ...mixing, program }, 1).show.toSorted()).toEqual(["ex.S", "ex.V"]);
  });
});

describe("a run on paper", () => {
  const { header, tensors } = JSON.parse(readFileSync(new URL("../fixtures/toy24.json", import.meta.url), "utf8"));
  const toy = traceOf({ header, tensors: Object.fromEntries(Object.entries(tensors).map(([key, data]) => [key, { data }])) as never });
  const session = { header: toy.header, engine: Engine.of(toy), structure: structureOf(toy.header) } as unknown as Session;

  test("forward asks for all that is computed and for nothing that is given", () => {
    const { asked, show } = askedOf(session, "forward");
    const computed = toy.header.statements.filter(({ face }) => face === "").map(({ target }) => target);
    const constant = toy.header.quantities.filter(({ kind }) => kind === "constant").map(({ id }) => id);
    expect([...asked].toSorted()).toEqual(computed.filter((id) => !constant.includes(id)).toSorted());
    expect(show).toContain("embed.E");
  });

  test("the update asks for the new parameters beside the old ones and their gradients", () => {
    const { asked, show } = askedOf(session, "update");
    expect([...asked].toSorted()).toEqual(session.engine.parameters.map((id) => `${id}.new`).toSorted());
    for (const id of session.engine.parameters) expect(show).toEqual(expect.arrayContaining([id, `${id}.grad`]));
  });

  test("wrong gradients are told in the order in which they are computed", () => {
    const cells = ["embed.E.grad", "loss.L", "head.logits.grad"].map((key) => ({ key, flat: 0 }));
    const [early, late] = [firstWrong(cells, toy.header.statements, () => "wrong"), firstWrong(cells.slice(0, 1).concat(cells[2]), toy.header.statements, () => "wrong")];
    expect([early?.key, late?.key]).toEqual(["loss.L", "head.logits.grad"]);
  });
});

describe("an address", () => {
  test("brings back place, language and changed numbers", () => {
    const engine = engineOf(hull);
    engine.setCell("ex.S", 0, -1.5e-7);
    engine.setCell("ex.V", 3, 1 / 3);
    const text = addressText({ language: "zh", section: "6.3", changes: changesOf("hull", engine) });
    expect(text).toBe(`#zh-6.3&hull:ex.S=-1.5e-7,0,0&hull:ex.V=0,0,4,${1 / 3},0,4`);
    const read = parseAddress(text);
    expect(read).toMatchObject({ language: "zh", section: "6.3" });
    const fresh = engineOf(hull);
    expect(applyChanges(fresh, read?.changes ?? [])).toBe(true);
    for (const id of ["ex.S", "ex.V"]) expect([...fresh.value(id)]).toEqual([...engine.value(id)]);
  });

  test("nothing changed is nothing said", () => {
    expect(changesOf("hull", engineOf(hull))).toEqual([]);
    expect(addressText({ language: "en", section: "", changes: [] })).toBe("#en");
    expect(parseAddress("#en")).toEqual({ language: "en", section: "", changes: [] });
  });

  test.each(["", "#", "#fr-6", "#en-6.3.1", "#cell=x:1", "#en-<b>", "#%"])("%s is no place of the book", (hash) => {
    expect(parseAddress(hash)).toBeNull();
  });

  test("changes that do not fit are left out", () => {
    const changes = parseAddress("#en-6&hull:ex.S=1,2&hull:ex.A=1,0,0&hull:ex.Q=1&hull:ex.S=1,,2&hull:ex.S=1e999,0,0&hull:eta=1")?.changes ?? [];
    const engine = engineOf(hull);
    expect(applyChanges(engine, changes)).toBe(false);
    expect(engine.edited()).toBe(false);
  });
});

describe("saving", () => {
  const trace = traceOfProgram(hull);
  const session = { trace, header: trace.header, engine: Engine.of(trace), style: styleOf(trace.header) } as unknown as Session;

  test("a matrix as LaTeX has its rows", () => {
    expect(matrixLatex(session, "ex.V")).toBe("V = \\begin{pmatrix} 0 & 0 \\\\ 4 & 0 \\\\ 0 & 4 \\end{pmatrix}");
  });

  test("a matrix as SVG has every number once", () => {
    const svg = matrixSvg(session, "ex.A");
    expect(svg.match(/>0\.25</g)).toHaveLength(2);
    expect(svg.match(/>0\.5</g)).toHaveLength(1);
  });
});

test("the hull of points has the corners and nothing inside or between", () => {
  const corners = hullOf([[0, 0], [4, 0], [0, 4], [1, 1], [2, 0], [2, 2]]);
  expect(corners).toEqual([[0, 0], [4, 0], [0, 4]]);
  expect(hullOf([[1, 1], [1, 1]])).toEqual([[1, 1]]);
});

test("a search finds blocks with every word, in either case, in either script", () => {
  const places = ["Scores of one row", "one share", "一行分数变成份额"].map((text, block) => ({ section: "6.2", block, text }));
  expect(hitsIn(places, "ONE row").map(({ block }) => block)).toEqual([0]);
  expect(hitsIn(places, "份额")[0].around).toEqual(["一行分数变成", "份额", ""]);
  expect(hitsIn(places, " ")).toEqual([]);
});

test("both orders have every chapter, and an unknown one falls back to the numbers", () => {
  expect(orderedChapters(data, "compute")).toEqual([10, 6]);
  expect(orderedChapters({ ...data, orders: { derive: [], compute: [] } }, "derive")).toEqual([6, 10]);
});

test("both languages say every sentence with the same words put in", () => {
  const names = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
  for (const [name, [en, zh]] of Object.entries(BOOK_TEXTS)) expect(names(zh), name).toEqual(names(en));
});

test("cells of a tensor are all of its cells", () => {
  expect(cellsOfTensor(engineOf(hull), "ex.V")).toHaveLength(6);
});
