/** What a reader can do: look at a cell, walk back and forward, change a number. */
import { Refused } from "../notation/recorded.ts";
import { isLeafEditable } from "./leaves.ts";
import { indexOf, splitKey } from "./keys.ts";
import { blockId } from "./mapping.ts";
import type { Session } from "./session.ts";
import { headAxis, headOfPlace, placeOfHead } from "./slices.ts";
import { sameCell, type Cell, type State, type View } from "./store.ts";
import type { Part } from "./structure.ts";

/** The view in which a key is drawn, staying where it is already visible. */
export function viewFor(key: string, now: View, parameter: boolean): View {
  const { face } = splitKey(key);
  if (now === "update" && parameter && face !== "after") return now;
  if (face === "grad") return "gradient";
  if (face === "new") return now === "after" || now === "compare" ? now : "update";
  if (face === "after") return now === "compare" ? now : "after";
  return now === "compare" ? now : "forward";
}

/** `open` with a part and the block around it. */
function opened(open: ReadonlySet<string>, part: Part): ReadonlySet<string> {
  const needed = part.block === null ? [part.id] : [part.id, blockId(part.block)];
  return needed.every((id) => open.has(id)) ? open : new Set([...open, ...needed]);
}

function revealing(session: Session, cell: Cell, stay = false): Partial<State> {
  const { store, structure, engine } = session;
  const state = store.get();
  const { id } = splitKey(cell.key);
  const part = structure.partOf.get(id);
  const quantity = structure.quantity.get(id);
  const change: Partial<State> = {
    selected: cell,
    view: stay ? state.view : viewFor(cell.key, state.view, quantity?.kind === "parameter"),
  };
  if (part) change.open = opened(state.open, part);
  const axis = quantity ? headAxis(quantity) : -1;
  if (part && axis >= 0) {
    const shape = engine.shape(cell.key);
    const place = indexOf(cell.flat, shape)[axis];
    const heads = engine.scalar("H");
    // Of the heads that share this one, the one already shown stays.
    const shown = placeOfHead(state.heads[part.id] ?? 0, shape[axis], heads) === place;
    if (!shown) change.heads = { ...state.heads, [part.id]: headOfPlace(place, shape[axis], heads) };
  }
  return change;
}

const LONGEST_HISTORY = 200;

/** Look at a cell; the one looked at before goes into the history. `stay` keeps the view, whether it draws it or not. */
export function select(session: Session, cell: Cell, stay = false): void {
  const { store } = session;
  const { selected, past } = store.get();
  if (sameCell(selected, cell)) {
    store.set(revealing(session, cell, stay));
    return;
  }
  const visited = selected ? [...past, selected].slice(-LONGEST_HISTORY) : past;
  store.set({ ...revealing(session, cell, stay), past: visited, future: [] });
}

export function goBack(session: Session): void {
  const { past, future, selected } = session.store.get();
  const cell = past.at(-1);
  if (!cell) return;
  const ahead = selected ? [selected, ...future] : future;
  session.store.set({ ...revealing(session, cell), past: past.slice(0, -1), future: ahead });
}

export function goForward(session: Session): void {
  const { past, future, selected } = session.store.get();
  const cell = future[0];
  if (!cell) return;
  session.store.set({
    ...revealing(session, cell),
    past: selected ? [...past, selected] : past,
    future: future.slice(1),
  });
}

export function togglePart(session: Session, id: string): void {
  const open = new Set(session.store.get().open);
  if (!open.delete(id)) open.add(id);
  session.store.set({ open });
}

/** Opens or closes every part. */
export function openAll(session: Session, all: boolean): void {
  const ids = session.structure.parts.flatMap((part) =>
    part.block === null ? [part.id] : [part.id, blockId(part.block)],
  );
  session.store.set({ open: new Set(all ? ids : []) });
}

/** Probes stand alone: what the map and the links above lead to is drawn in the other views. */
export function leaveProbes({ store }: Session): void {
  if (store.get().view === "probes") store.set({ view: "forward" });
}

/** Scrolls to a block, a part or a quantity, opening what hides it. */
export function show(session: Session, id: string): void {
  const { store, structure } = session;
  const part = structure.partOf.get(id) ?? structure.parts.find((each) => each.id === id);
  leaveProbes(session);
  if (part) store.set({ open: opened(store.get().open, part) });
  const goal = structure.partOf.has(id) ? `card-${id}` : part ? `part-${id}` : `block-${id}`;
  requestAnimationFrame(() => {
    document.getElementById(goal)?.scrollIntoView({ block: "start" });
  });
}

/** Everything after an edit: at once where the model is small, in slices otherwise (the last edit wins). */
export async function recompute(session: Session): Promise<void> {
  const { engine, store } = session;
  session.running?.abort();
  if (engine.pace === "live") {
    engine.recompute();
    store.set({ version: engine.version, edited: engine.edited() });
    return;
  }
  const mine = new AbortController();
  session.running = mine;
  store.set({ busy: true, edited: engine.edited() });
  const finished = await engine.recomputeInSlices(mine.signal);
  if (finished && session.running === mine) store.set({ busy: false, version: engine.version });
}

/** Carries out a change; one that cannot be is told to the reader and leaves everything as it was. */
function attempt(session: Session, change: () => void): void {
  try {
    change();
    session.store.set({ notice: null });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    session.store.set({ notice: error.reason });
    return;
  }
  void recompute(session);
}

/** Changes one cell of a leaf. Parameters take any finite number; tokens and targets take ids of the vocabulary. */
export function editCell(session: Session, id: string, flat: number, x: number): void {
  const { engine } = session;
  attempt(session, () => {
    if (!isLeafEditable(session, id)) throw new Refused("notLeaf", `${id} cannot be changed`);
    if (id === "embed.t") editToken(session, flat, x);
    else if (id === "loss.y") engine.setTarget(flat, x);
    else if (id === "loss.scored") engine.setTarget(flat, x ? engine.value("loss.y")[flat] : null);
    else engine.setCell(id, flat, x);
  });
}

/** Whether every row that counts predicts the token after it. */
function isText(tokens: Float64Array, targets: Float64Array, scored: Float64Array): boolean {
  return targets.every((target, row) => !scored[row] || target === tokens[row + 1]);
}

/** In a run on text the target of a position is the next token: it follows the edit. */
function editToken(session: Session, row: number, token: number): void {
  const { engine, trace } = session;
  const tokens = engine.tokens();
  tokens[row] = token;
  engine.setTokens(tokens);
  const recorded = trace.tensor("embed.t");
  const targets = trace.tensor("loss.y");
  const scored = trace.tensor("loss.scored");
  if (row === 0 || !recorded || !targets || !scored || !isText(recorded, targets, scored)) return;
  if (scored[row - 1]) engine.setTarget(row - 1, token);
}

/** Drops the target of a row: the row no longer counts in the loss. */
export function dropTarget(session: Session, row: number): void {
  attempt(session, () => session.engine.setTarget(row, null));
}

export function editScalar(session: Session, name: "eta" | "eps", x: number): void {
  attempt(session, () => session.engine.setScalar(name, x));
}

export function resetEdits(session: Session): void {
  attempt(session, () => session.engine.reset());
}
