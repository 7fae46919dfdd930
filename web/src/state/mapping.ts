/** The rows of the map and the edges between them: parts when closed, their quantities when open. */
import type { Header, QuantityInfo } from "../data/types.ts";
import type { View } from "./store.ts";
import { keysRead, type Part, type Structure } from "./structure.ts";
import { splitKey } from "./keys.ts";

export interface MapRow {
  kind: "block" | "part" | "quantity";
  id: string;
  part?: Part;
  quantity?: QuantityInfo;
  block?: number;
  depth: number;
}

export interface MapEdge {
  from: number;
  to: number;
  /** Quantities at both ends, where an end is a single quantity. */
  ends: [string, string][];
}

export function blockId(block: number): string {
  return `blocks.${block}`;
}

/** Rows in the order of the view. `shows` says whether the view has something of a quantity. */
export function rowsOf(
  structure: Structure,
  view: View,
  open: ReadonlySet<string>,
  shows: (quantity: QuantityInfo) => boolean,
): MapRow[] {
  const turned = <T>(list: T[]): T[] => (view === "gradient" ? [...list].reverse() : list);
  const rows: MapRow[] = [];
  let block: number | null = null;
  for (const part of turned(structure.parts)) {
    const quantities = turned(part.quantities).filter(shows);
    if (quantities.length === 0) continue;
    if (part.block !== block && part.block !== null) {
      rows.push({ kind: "block", id: blockId(part.block), block: part.block, depth: 0 });
    }
    block = part.block;
    if (block !== null && !open.has(blockId(block))) continue;
    const depth = block === null ? 0 : 1;
    const single = part.quantities.length === 1;
    rows.push({ kind: "part", id: part.id, part, depth, ...(single ? { quantity: part.quantities[0] } : {}) });
    if (single || !open.has(part.id)) continue;
    for (const quantity of quantities)
      rows.push({ kind: "quantity", id: quantity.id, part, quantity, depth: depth + 1 });
  }
  return rows;
}

/** The row that stands for a quantity: its own, its part's, or its block's. */
function rowFor(id: string, structure: Structure, places: Map<string, number>): number | undefined {
  const part = structure.partOf.get(id);
  if (!part) return undefined;
  const block = part.block === null ? undefined : places.get(blockId(part.block));
  return places.get(id) ?? places.get(part.id) ?? block;
}

/** Who reads whom, between the rows that are shown. */
export function edgesOf(header: Header, structure: Structure, view: View, rows: MapRow[]): MapEdge[] {
  const face = view === "gradient" ? "grad" : "";
  if (view === "update") return [];
  const places = new Map(rows.map((row, at) => [row.id, at]));
  const edges = new Map<string, MapEdge>();
  for (const statement of header.statements) {
    if (statement.face !== face) continue;
    const to = rowFor(statement.target, structure, places);
    for (const key of keysRead(statement)) {
      const read = splitKey(key);
      if (read.face !== face) continue;
      const from = rowFor(read.id, structure, places);
      if (from === undefined || to === undefined || from === to) continue;
      const name = `${from} ${to}`;
      const edge = edges.get(name) ?? { from, to, ends: [] };
      edge.ends.push([read.id, statement.target]);
      edges.set(name, edge);
    }
  }
  return [...edges.values()];
}
