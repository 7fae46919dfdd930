/** The symbol of a quantity or of one of its cells, as LaTeX and as plain text; indices count from 1. */
import type { QuantityInfo } from "../data/types.ts";
import type { AnyFace } from "./keys.ts";
import { indexOf, splitKey } from "./keys.ts";
import type { Session } from "./session.ts";
import type { Cell } from "./store.ts";
import type { Structure } from "./structure.ts";

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";

/** `W_Q`, with its layer when the model has several. */
export function plainTex(quantity: QuantityInfo, structure: Structure): string {
  return structure.blocks > 1 ? quantity.latex : quantity.symbol;
}

/** The symbol of a whole tensor: `\bar W_Q` for a gradient, a prime for the forward pass after the update. */
export function tensorTex(quantity: QuantityInfo, face: AnyFace, structure: Structure): string {
  const symbol = plainTex(quantity, structure);
  if (face === "grad") return `\\bar ${group(symbol)}`;
  if (face === "new") return `${bracket(symbol)}^{\\text{new}}`;
  if (face === "after") return `${bracket(symbol)}^{\\text{after}}`;
  return symbol;
}

function group(symbol: string): string {
  const found = /^(\\?[A-Za-z]+|\S)([_^].*)?$/.exec(symbol);
  return found ? `{${found[1]}}${found[2] ?? ""}` : `{${symbol}}`;
}

function bracket(symbol: string): string {
  return symbol.includes("^") ? `{${symbol}}` : symbol;
}

/** Axes and index of a cell without the head axis where there is a single head, as the notes print it. */
function printed(quantity: QuantityInfo, index: readonly number[], heads: number): { head: number | null; rest: number[] } {
  const at = quantity.axes.findIndex(([letter]) => letter === "h");
  const rest = index.filter((_, axis) => axis !== at).map((each) => each + 1);
  return { head: at >= 0 && heads > 1 ? index[at] + 1 : null, rest };
}

/** A cell's symbol: `S_{21}`, `[W_Q^{(1)}]_{21}`. */
export function cellTex(session: Session, cell: Cell): string {
  const { id, face } = splitKey(cell.key);
  const { structure, engine } = session;
  const quantity = structure.quantity.get(id);
  if (!quantity) return cell.key;
  const index = indexOf(cell.flat, engine.shape(cell.key));
  const { head, rest } = printed(quantity, index, session.header.scalars["H"] ?? 1);
  const whole = tensorTex(quantity, face, structure);
  const symbol = head === null ? whole : `{${whole}}^{(${head})}`;
  if (rest.length === 0) return symbol;
  const subscript = rest.every((each) => each < 10) ? rest.join("") : rest.join(",");
  return /[_^]/.test(whole) || head !== null ? `\\left[${symbol}\\right]_{${subscript}}` : `${symbol}_{${subscript}}`;
}

/** The same without LaTeX, for captions and screen readers: `W_Q.grad₂₁`. */
export function cellName(session: Session, cell: Cell): string {
  const { id, face } = splitKey(cell.key);
  const quantity = session.structure.quantity.get(id);
  if (!quantity) return cell.key;
  const index = indexOf(cell.flat, session.engine.shape(cell.key));
  const { head, rest } = printed(quantity, index, session.header.scalars["H"] ?? 1);
  const digits = (number: number): string =>
    String(number).replace(/\d/g, (digit) => SUBSCRIPTS[Number(digit)]);
  const separator = rest.some((each) => each > 9) ? "," : "";
  const layer = session.structure.blocks > 1 && quantity.layer !== null ? `⁽${quantity.layer + 1}⁾` : "";
  const at = head === null ? "" : `(${head})`;
  return `${quantity.name}${face === "" ? "" : `.${face}`}${layer}${at}${rest.map(digits).join(separator)}`;
}
