/** The symbols of this trace as the views need them: whole tensors and single cells, in LaTeX and in plain text. */
import { indexOf, splitKey, type AnyFace } from "./keys.ts";
import type { Session } from "./session.ts";
import type { Cell } from "./store.ts";

/** The symbol of a whole tensor: `\bar W_Q` for a gradient. */
export function tensorTex({ style }: Session, id: string, face: AnyFace = ""): string {
  return style.name(id, face);
}

/** A cell's symbol, indices counted from 1: `S_{21}`, `[W_Q^{(1)}]_{21}`. */
export function cellTex({ style, engine }: Session, cell: Cell): string {
  const { id, face } = splitKey(cell.key);
  return style.cell(
    id,
    face,
    indexOf(cell.flat, engine.shape(cell.key)).map((at) => String(at + 1)),
  )[0];
}

/** The same without LaTeX, for screen readers: `s_21`. */
export function cellName({ style, engine }: Session, cell: Cell): string {
  const { id, face } = splitKey(cell.key);
  return style.entry(id, face, indexOf(cell.flat, engine.shape(cell.key)));
}
