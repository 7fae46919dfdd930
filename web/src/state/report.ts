/** Numbers of a probe's report, as figures read them: what is not there in the expected form is not drawn. */
import type { ReportCell } from "../data/types.ts";

export type Numbers = (number | null)[];

function isNumbers(x: unknown): x is Numbers {
  return Array.isArray(x) && x.every((each) => each === null || typeof each === "number");
}

/** `values[name]` as one row of numbers. */
export function rowOf(values: Record<string, unknown>, name: string): Numbers | null {
  const found = values[name];
  return isNumbers(found) ? found : null;
}

/** `values[name]` as rows of one length. */
export function rowsOf(values: Record<string, unknown>, name: string): Numbers[] | null {
  const found = values[name];
  if (!Array.isArray(found) || !found.every(isNumbers)) return null;
  return found.every((row) => row.length === found[0].length) ? found : null;
}

/** `values[name]` as a number from 0 up, whole. */
export function countOf(values: Record<string, unknown>, name: string): number | null {
  const found = values[name];
  return typeof found === "number" && Number.isInteger(found) && found >= 0 ? found : null;
}

/** A cell as a number; null where it is none. */
export function numberIn(cell: ReportCell | undefined): number | null {
  return typeof cell === "number" ? cell : null;
}
