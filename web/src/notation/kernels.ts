/** The inner loops: one function per operation, each over `n` cells at a fixed step. */
import { erf } from "./erf.ts";

/** `out[o..o+n] = a op b`; the result is dense. */
export type Binary = (
  out: Float64Array, o: number, a: Float64Array, i: number, si: number, b: Float64Array, j: number, sj: number, n: number,
) => void;

// The four that dominate are written out: a shared loop that calls an operation would be several times slower.
const add: Binary = (out, o, a, i, si, b, j, sj, n) => {
  for (let k = 0; k < n; k++, i += si, j += sj) out[o + k] = a[i] + b[j];
};
const sub: Binary = (out, o, a, i, si, b, j, sj, n) => {
  for (let k = 0; k < n; k++, i += si, j += sj) out[o + k] = a[i] - b[j];
};
const mul: Binary = (out, o, a, i, si, b, j, sj, n) => {
  for (let k = 0; k < n; k++, i += si, j += sj) out[o + k] = a[i] * b[j];
};
const div: Binary = (out, o, a, i, si, b, j, sj, n) => {
  for (let k = 0; k < n; k++, i += si, j += sj) out[o + k] = a[i] / b[j];
};

function binary(op: (x: number, y: number) => number): Binary {
  return (out, o, a, i, si, b, j, sj, n) => {
    for (let k = 0; k < n; k++, i += si, j += sj) out[o + k] = op(a[i], b[j]);
  };
}

/** A power; squares and small whole powers by multiplication, as NumPy does for squares. */
export function power(x: number, p: number): number {
  return p === 2 ? x * x : Math.pow(x, p);
}

export const BINARY: Readonly<Record<string, Binary>> = {
  add, sub, mul, div,
  pow: binary(power),
  min: binary((x, y) => (x < y || x !== x ? x : y)),
  max: binary((x, y) => (x > y || x !== x ? x : y)),
  and: binary((x, y) => (x !== 0 && y !== 0 ? 1 : 0)),
  or: binary((x, y) => (x !== 0 || y !== 0 ? 1 : 0)),
  "<": binary((x, y) => (x < y ? 1 : 0)),
  "<=": binary((x, y) => (x <= y ? 1 : 0)),
  ">": binary((x, y) => (x > y ? 1 : 0)),
  ">=": binary((x, y) => (x >= y ? 1 : 0)),
  "==": binary((x, y) => (x === y ? 1 : 0)),
  "!=": binary((x, y) => (x !== y ? 1 : 0)),
};

export const UNARY: Readonly<Record<string, (x: number) => number>> = {
  neg: (x) => -x,
  not: (x) => (x === 0 ? 1 : 0),
  exp: Math.exp,
  ln: Math.log,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
  abs: Math.abs,
  erf,
};

/** `C[b,m,n] = sum_k A[b,m,k] B[b,k,n]`, all dense from their offsets. */
export function matmul(
  C: Float64Array, A: Float64Array, a0: number, B: Float64Array, b0: number, batches: number, M: number, K: number, N: number,
): void {
  C.fill(0, 0, batches * M * N);
  for (let b = 0; b < batches; b++) {
    for (let m = 0; m < M; m++) {
      const row = (b * M + m) * N;
      let a = a0 + (b * M + m) * K;
      let from = b0 + b * K * N;
      let k = 0;
      // Four rows of B at a time: one load and store of C for four products.
      for (; k + 4 <= K; k += 4, a += 4, from += 4 * N) {
        const w = A[a], x = A[a + 1], y = A[a + 2], z = A[a + 3];
        const f1 = from + N, f2 = f1 + N, f3 = f2 + N;
        for (let n = 0; n < N; n++) C[row + n] += w * B[from + n] + x * B[f1 + n] + y * B[f2 + n] + z * B[f3 + n];
      }
      for (; k < K; k++, a++, from += N) {
        const w = A[a];
        for (let n = 0; n < N; n++) C[row + n] += w * B[from + n];
      }
    }
  }
}

/** `C[b,m,n] = sum_k A[b,m,k] B[b,n,k]`: the same for a second operand that lies transposed. */
export function matmulTransposed(
  C: Float64Array, A: Float64Array, a0: number, B: Float64Array, b0: number, batches: number, M: number, K: number, N: number,
): void {
  for (let b = 0; b < batches; b++) {
    for (let m = 0; m < M; m++) {
      const a = a0 + (b * M + m) * K;
      for (let n = 0; n < N; n++) {
        const from = b0 + (b * N + n) * K;
        let s = 0, t = 0, u = 0, v = 0, k = 0;
        for (; k + 4 <= K; k += 4) {
          s += A[a + k] * B[from + k];
          t += A[a + k + 1] * B[from + k + 1];
          u += A[a + k + 2] * B[from + k + 2];
          v += A[a + k + 3] * B[from + k + 3];
        }
        for (; k < K; k++) s += A[a + k] * B[from + k];
        C[(b * M + m) * N + n] = s + t + (u + v);
      }
    }
  }
}
