/** What the book carries beside its chapters: derivations, worked examples, exercises, runs, contents. */
import { type Trace, decodeTensor } from "../data/trace.ts";
import type { Bilingual, Derivation, DerivationStep, Header, QuantityInfo, Statement } from "../data/types.ts";

/** A number that JSON may have no spelling for; null stands for minus infinity. */
export type Spelt = number | null | "inf" | "-inf" | "nan";

/** Numbers nested as their axes are. */
export type Nested = Spelt | Nested[];

/** A cell of a quantity, counted from 0. */
export interface CellOf {
  id: string;
  index: number[];
}

/** Definitions with the numbers that they start from. */
export interface Program {
  id: string;
  title: Bilingual;
  scalars: Record<string, number>;
  quantities: QuantityInfo[];
  /** The forward pass, in order. */
  statements: Statement[];
  inputs: Record<string, Nested>;
  /** The quantities that are drawn, in order. */
  show: string[];
  /** Texts for the places along a dimension. */
  labels: Record<string, string[]>;
  /** A line under a quantity. */
  notes: Record<string, Bilingual>;
  /** Quantities that tell places (token ids, rows): computed from 0, shown from 1. */
  places?: string[];
}

/** One input cell that is moved between two ends. */
export interface Slider extends CellOf {
  low: number;
  high: number;
  step: number;
}

/** How some cells go with a slider, all else as it stands. */
export interface CurveOf {
  title: Bilingual;
  slider: number;
  ys: CellOf[];
}

/** Points of the plane (a matrix of two columns) and a point among them, drawn with the hull of the points. */
export interface PlaneOf {
  points: string;
  point: string;
}

/** A worked example whose numbers readers change. */
export interface Example extends Program {
  values: Record<string, Nested>;
  sliders: Slider[];
  curves: CurveOf[];
  planes?: PlaneOf[];
}

/** Whole numbers, or multiples of a step, between two ends. */
export interface Draw {
  low: number;
  high: number;
  step?: number;
}

/** Fresh numbers at each try; the answers are computed. */
export interface ComputeExercise {
  kind: "compute";
  id: string;
  title: Bilingual;
  text: Bilingual;
  /** What is not drawn anew comes with it; without `show`, what is given is shown. */
  program: Pick<Program, "scalars" | "quantities" | "statements"> &
    Partial<Pick<Program, "inputs" | "show" | "labels" | "notes" | "places">>;
  draw: Record<string, Draw>;
  /** Whole quantities, or single cells. */
  ask: (string | CellOf)[];
}

export interface ChooseExercise {
  kind: "choose";
  id: string;
  title?: Bilingual;
  text: Bilingual;
  options: { text: Bilingual; right: boolean; why: Bilingual }[];
}

export type Exercise = ComputeExercise | ChooseExercise;

/** A chain of the trace page, or a lemma, which belongs to no tensor. */
export interface Chain extends Pick<Derivation, "id" | "title" | "status" | "source"> {
  steps: (Pick<DerivationStep, "latex" | "reason" | "condition"> & { premises?: string[] })[];
  premises?: Record<string, Bilingual>;
}

/** A tensor row by row: as numbers, or as base64 in a format of `decodeTensor`. */
export type RunTensor = { data: Spelt[] } | { dtype: string; data: string };

export interface Run {
  header: Header;
  tensors: Record<string, RunTensor>;
}

export interface Contents {
  number: number;
  title: Bilingual;
  sections: { number: string; title: Bilingual }[];
}

export type Order = "derive" | "compute";

export interface BookData {
  title?: Bilingual;
  chains: Record<string, Chain>;
  examples: Record<string, Example>;
  exercises: Record<string, Exercise>;
  runs: Record<string, Run>;
  contents: Contents[];
  orders: Record<Order, number[]>;
}

const TABLES = ["chains", "examples", "exercises", "runs", "contents", "orders"] as const satisfies (keyof BookData)[];

/**
 * The data of the document; throws an `Error` with a sentence for the reader when there is none. Each table has a block of
 * its own and is read when it is first asked for: together they are half a megabyte, and the contents need little of it.
 */
export function bookOf(document: Document): BookData {
  const book: Partial<BookData> = {};
  for (const name of [...TABLES, "title"] as const) {
    const block = document.querySelector(`script[data-book="${name}"]`);
    if (!block) {
      if (name === "title") continue;
      throw new Error("This page carries no book. Make one with: glassformer book");
    }
    let read: unknown;
    Object.defineProperty(book, name, { enumerable: true, get: () => (read ??= JSON.parse(block.textContent ?? "")) });
  }
  return book as BookData;
}

/** A run as the page of a trace has it; tensors are decoded when first asked for. */
export function traceOf({ header, tensors }: Run): Trace {
  const decoded = new Map<string, Float64Array>();
  return {
    header,
    keys: Object.keys(tensors),
    tensor(key) {
      if (!Object.hasOwn(tensors, key)) return undefined;
      const numbers = decoded.get(key) ?? numbersOf(tensors[key]);
      decoded.set(key, numbers);
      return numbers;
    },
  };
}

function numbersOf(tensor: RunTensor): Float64Array {
  return "dtype" in tensor ? decodeTensor(tensor.data, tensor.dtype) : Float64Array.from(tensor.data, number);
}

function number(x: Spelt): number {
  return typeof x === "number" ? x : { inf: Infinity, nan: NaN, "-inf": -Infinity }[x ?? "-inf"];
}

/** Nested numbers in row-major order. */
export function flattened(nested: Nested): Float64Array {
  const flat: number[] = [];
  const walk = (part: Nested): void => {
    if (Array.isArray(part)) part.forEach(walk);
    else flat.push(number(part));
  };
  walk(nested);
  return Float64Array.from(flat);
}
