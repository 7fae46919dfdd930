/** How a tensor of any rank lies in the plane: rows, columns, and the axis that a selector walks through. */
import type { Axis, QuantityInfo } from "../data/types.ts";

export interface Plane {
  rows: number;
  columns: number;
  rowAxis: Axis | null;
  columnAxis: Axis | null;
  /** The axis that a selector walks through (heads), with its size. */
  through: { axis: Axis; size: number } | null;
  /** Row-major position of a place in the plane. */
  flat: (row: number, column: number) => number;
  /** The place in the plane of a position, null where it lies in another plane. */
  place: (flat: number) => { row: number; column: number } | null;
}

const HEADS = new Set(["h", "k"]);

/** The axis of heads (of queries, or of keys and values); -1 where there is none. */
export function headAxis(quantity: QuantityInfo): number {
  return quantity.axes.findIndex(([letter]) => HEADS.has(letter));
}

/**
 * Where a model has fewer heads of keys than of queries, neighbours share one. A part remembers the head of queries;
 * these turn it into the place along the axis of heads of a tensor of `size` heads, and back (the first that shares it).
 */
export function placeOfHead(head: number, size: number, heads: number): number {
  return heads > size ? Math.floor((head * size) / heads) : head;
}

export function headOfPlace(place: number, size: number, heads: number): number {
  return heads > size ? Math.ceil((place * heads) / size) : place;
}

/** A vector over positions stands, other vectors lie. */
const TALLEST_VECTOR = 12;

/** The plane of `quantity` at position `at` of its selector axis. */
export function planeOf(quantity: QuantityInfo, shape: readonly number[], at: number): Plane {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));
  const head = headAxis(quantity);
  const through = head >= 0 && quantity.axes.length > 1 ? head : quantity.axes.length > 2 ? 0 : -1;
  const shown = quantity.axes.map((_, axis) => axis).filter((axis) => axis !== through);
  const lone = shown.length === 1;
  const stands = lone && ["i", "j"].includes(quantity.axes[shown[0]][0]) && shape[shown[0]] <= TALLEST_VECTOR;
  const row = lone && !stands ? -1 : (shown[0] ?? -1);
  const column = lone ? (stands ? -1 : shown[0]) : (shown[1] ?? -1);
  const start = through >= 0 ? Math.min(at, shape[through] - 1) * strides[through] : 0;
  const step = (axis: number): number => (axis >= 0 ? strides[axis] : 0);
  const axisAt = (axis: number): Axis | null => (axis >= 0 ? quantity.axes[axis] : null);
  const along = (flat: number, axis: number): number =>
    axis >= 0 ? Math.floor(flat / strides[axis]) % shape[axis] : 0;
  return {
    rows: row >= 0 ? shape[row] : 1,
    columns: column >= 0 ? shape[column] : 1,
    rowAxis: axisAt(row),
    columnAxis: axisAt(column),
    through: through >= 0 ? { axis: quantity.axes[through], size: shape[through] } : null,
    flat: (r, c) => start + r * step(row) + c * step(column),
    place: (flat) => {
      if (through >= 0 && along(flat, through) !== Math.min(at, shape[through] - 1)) return null;
      return { row: along(flat, row), column: along(flat, column) };
    },
  };
}
