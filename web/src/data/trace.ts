/** A trace as the page holds it: the header, and tensors that are decoded when first asked for. */
import type { Header, QuantityInfo } from "./types.ts";

export interface Trace {
  header: Header;
  /** Keys of the recorded tensors. */
  keys: readonly string[];
  /** The recorded tensor of `key` in row-major order, or `undefined` where it was not recorded. */
  tensor(key: string): Float64Array | undefined;
}

/** The cells of a quantity along each axis. */
export function shapeOf(header: Header, quantity: QuantityInfo): number[] {
  return quantity.axes.map(([, dimension]) => {
    const size = header.scalars[dimension];
    if (size === undefined) throw new Error(`the trace gives no size for the dimension ${dimension}`);
    return size;
  });
}

/** base64 to bytes; the browser's own decoder where there is one. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const native = Uint8Array as unknown as { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  if (native.fromBase64) return native.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Little-endian float64 (`f8`) or float32 (`f4`, written where nothing is lost) to numbers. */
export function decodeTensor(base64: string, dtype: string): Float64Array {
  const bytes = bytesOf(base64.trim());
  // The numbers lie in memory as this machine has them, on every machine a browser runs on but a few.
  if (LITTLE_ENDIAN && dtype === "f8") return new Float64Array(bytes.buffer, 0, bytes.length / 8);
  if (LITTLE_ENDIAN && dtype === "f4") return Float64Array.from(new Float32Array(bytes.buffer, 0, bytes.length / 4));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === "f8") return Float64Array.from({ length: bytes.length / 8 }, (_, k) => view.getFloat64(8 * k, true));
  if (dtype === "f4") return Float64Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
  throw new Error(`unknown number format ${dtype}`);
}

const SCHEMA = 2;

/** The trace that this document carries; throws an `Error` with a sentence for the reader when there is none. */
export function traceOfDocument(document: Document): Trace {
  const headerBlock = document.getElementById("glassformer-header");
  if (!headerBlock) throw new Error("This page carries no trace. Make one with: glassformer trace toy24 --html toy24.html");
  const header = JSON.parse(headerBlock.textContent ?? "") as Header;
  if (header.schema !== SCHEMA) throw new Error(`This page cannot read a trace of schema ${String(header.schema)}.`);
  const blocks = new Map<string, HTMLScriptElement>();
  for (const block of document.querySelectorAll<HTMLScriptElement>("script[data-key]")) {
    blocks.set(block.dataset.key ?? "", block);
  }
  const decoded = new Map<string, Float64Array>();
  return {
    header,
    keys: [...blocks.keys()],
    tensor(key) {
      const block = blocks.get(key);
      if (!block) return undefined;
      let cells = decoded.get(key);
      if (!cells) {
        cells = decodeTensor(block.textContent ?? "", block.dataset.dtype ?? "");
        decoded.set(key, cells);
      }
      return cells;
    },
  };
}
