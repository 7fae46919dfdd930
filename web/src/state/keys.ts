/** Keys, indices and flat positions. */
import type { Face } from "../data/types.ts";

export type AnyFace = Face | "";

const FACE = /^(.*)\.(grad|new|after)$/;

/** `blocks.0.attn.S.grad` -> its id and its face. */
export function splitKey(key: string): { id: string; face: AnyFace } {
  const found = FACE.exec(key);
  if (!found) return { id: key, face: "" };
  return { id: found[1] as string, face: found[2] as Face };
}

export function keyOf(id: string, face: AnyFace): string {
  return face === "" ? id : `${id}.${face}`;
}

/** Row-major position -> index along each axis. */
export function indexOf(flat: number, shape: readonly number[]): number[] {
  const index = new Array<number>(shape.length).fill(0);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis] as number;
    index[axis] = flat % size;
    flat = Math.floor(flat / size);
  }
  return index;
}

/** Index along each axis -> row-major position. */
export function flatOf(index: readonly number[], shape: readonly number[]): number {
  return shape.reduce((flat, size, axis) => flat * size + (index[axis] as number), 0);
}

export function cellsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** `A[0,1,0]`, or the bare name of a quantity without axes: how Python and the command line write a cell. */
export function pythonName(key: string, index: readonly number[]): string {
  return index.length ? `${key}[${index.join(",")}]` : key;
}
