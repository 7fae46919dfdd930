/** Strided arrays whose axes are letters, and the loops over them. */

/** Numbers with one stride per letter; a view never copies. */
export interface Arr {
  data: Float64Array;
  offset: number;
  letters: readonly string[];
  sizes: readonly number[];
  strides: readonly number[];
}

export function cells(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total * size, 1);
}

export function rowMajor(sizes: readonly number[]): number[] {
  const strides = new Array<number>(sizes.length);
  let step = 1;
  for (let k = sizes.length - 1; k >= 0; k--) {
    strides[k] = step;
    step *= sizes[k];
  }
  return strides;
}

export function dense(data: Float64Array, letters: readonly string[], sizes: readonly number[]): Arr {
  return { data, offset: 0, letters, sizes, strides: rowMajor(sizes) };
}

/** All letters of `parts` in order of first appearance, with their sizes. */
export function union(parts: readonly Arr[]): { letters: string[]; sizes: number[] } {
  const sizes = new Map<string, number>();
  for (const part of parts) part.letters.forEach((letter, k) => sizes.set(letter, part.sizes[k]));
  return { letters: [...sizes.keys()], sizes: [...sizes.values()] };
}

/** The stride of `x` along each of `letters`, 0 where it does not vary. */
export function stridesAlong(x: Arr, letters: readonly string[]): number[] {
  return letters.map((letter) => {
    const at = x.letters.indexOf(letter);
    return at < 0 ? 0 : x.strides[at];
  });
}

/** A nest of loops flattened: `outer` starts per operand, then `inner` cells at one step per operand. */
export interface Loop {
  outer: number;
  inner: number;
  starts: Int32Array[];
  steps: number[];
}

/** Offsets of all cells in row-major order of `sizes`. */
export function offsets(sizes: readonly number[], strides: readonly number[], from = 0): Int32Array {
  let found = Int32Array.of(from);
  for (let k = 0; k < sizes.length; k++) {
    const next = new Int32Array(found.length * sizes[k]);
    for (let a = 0, at = 0; a < found.length; a++) {
      for (let b = 0; b < sizes[k]; b++) next[at++] = found[a] + b * strides[k];
    }
    found = next;
  }
  return found;
}

/** Loops over `letters` for several operands at once; neighbouring axes that run on evenly become one. */
export function loopOver(letters: readonly string[], sizes: readonly number[], operands: readonly Arr[]): Loop {
  const along = operands.map((x) => stridesAlong(x, letters));
  const merged: number[] = [];
  const strides = operands.map((): number[] => []);
  for (let k = 0; k < sizes.length; k++) {
    if (sizes[k] === 1) continue;
    const last = merged.length - 1;
    const runsOn = last >= 0 && strides.every((s, x) => s[last] === along[x][k] * sizes[k]);
    if (runsOn) {
      merged[last] *= sizes[k];
      strides.forEach((s, x) => (s[last] = along[x][k]));
    } else {
      merged.push(sizes[k]);
      strides.forEach((s, x) => s.push(along[x][k]));
    }
  }
  const inner = merged.pop() ?? 1;
  const steps = strides.map((s) => s.pop() ?? 0);
  const starts = operands.map((x, k) => offsets(merged, strides[k], x.offset));
  return { outer: cells(merged), inner, starts, steps };
}

/** Whether `x`, read along `letters`, lies densely in row-major order. */
export function liesDense(x: Arr, letters: readonly string[]): boolean {
  let step = 1;
  for (let k = letters.length - 1; k >= 0; k--) {
    const at = x.letters.indexOf(letters[k]);
    if (at < 0) return false;
    if (x.sizes[at] !== 1 && x.strides[at] !== step) return false;
    step *= x.sizes[at];
  }
  return true;
}

/** Work memory: buffers of one statement are free again for the next, since statements run one after another. */
export class Pool {
  private readonly free = new Map<number, Float64Array[]>();
  private readonly taken = new Map<number, number>();

  take(size: number): Float64Array {
    const buffers = this.free.get(size) ?? [];
    this.free.set(size, buffers);
    const used = this.taken.get(size) ?? 0;
    this.taken.set(size, used + 1);
    if (used === buffers.length) buffers.push(new Float64Array(size));
    return buffers[used];
  }

  /** Ends a statement. */
  release(): void {
    this.taken.clear();
  }
}
