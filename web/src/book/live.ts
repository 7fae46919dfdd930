/** Worked examples as runs of their own: the page's engine computes them as it computes a trace. */
import type { Trace } from "../data/trace.ts";
import type { Header } from "../data/types.ts";
import { Engine } from "../notation/engine.ts";
import { flatOf } from "../state/keys.ts";
import type { Cell } from "../state/store.ts";
import { type CellOf, type CurveOf, type Program, type Slider, flattened } from "./data.ts";

const NOBODY = { en: "", zh: "" };

/** A header that holds nothing but definitions; of the book itself, not even those. */
export function bareHeader(part: Partial<Header> = {}): Header {
  return {
    schema: 2, version: "", title: NOBODY, source: "book", provenance: "constructed", scalars: {}, aliases: {},
    vocabulary: [], labels: [], quantities: [], statements: [], derivations: [], witnesses: {}, update: null,
    replay: { worst: 0, unit: "", cells: 0, by: {} }, audit: null,
    observer: { dtype: "float64", max_abs_logit_difference: 0 }, ...part,
  }; // prettier-ignore
}

/** A program as the run that it is; its inputs can be changed. */
export function traceOfProgram(program: Program): Trace {
  const given = new Map(Object.entries(program.inputs).map(([id, numbers]) => [id, flattened(numbers)]));
  const quantities = program.quantities.map((each) => ({ ...each, editable: given.has(each.id) }));
  const { title, scalars, statements } = program;
  return {
    header: bareHeader({ title, scalars, quantities, statements }),
    keys: [...given.keys()],
    tensor: (key) => given.get(key),
  };
}

/** The cell of the page's engine that `at` names. */
export function cellAt(engine: Engine, { id, index }: CellOf): Cell {
  return { key: id, flat: flatOf(index, engine.shape(id)) };
}

/** Points along a curve, unless the slider has fewer places. */
const POINTS = 81;

/**
 * What a curve shows: the slider's values and, for each cell, its number at each of them. `engine` is read only; `second`,
 * an engine of the same program, is used to try them out.
 */
export function curvePoints(
  curve: CurveOf,
  slider: Slider,
  engine: Engine,
  second: Engine,
  inputs: readonly string[],
): { xs: number[]; ys: number[][] } {
  for (const id of inputs) engine.value(id).forEach((x, flat) => second.setCell(id, flat, x));
  const moved = cellAt(second, slider);
  const cells = curve.ys.map((y) => cellAt(second, y));
  // Between two places of the slider a count of coordinates, say, means nothing.
  const count = Math.min(POINTS, Math.round((slider.high - slider.low) / slider.step) + 1);
  const xs = Array.from({ length: count }, (_, k) => slider.low + (k / (count - 1)) * (slider.high - slider.low));
  const ys: number[][] = cells.map(() => []);
  for (const x of xs) {
    second.setCell(moved.key, moved.flat, x);
    second.recompute();
    cells.forEach(({ key, flat }, k) => ys[k].push(second.value(key)[flat]));
  }
  return { xs, ys };
}
