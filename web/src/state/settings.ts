/** Choices that outlive a visit, and how the page starts. */
import type { Header, Language } from "../data/types.ts";
import type { Engine } from "../notation/engine.ts";
import { cellsOf } from "./keys.ts";
import { blockId } from "./mapping.ts";
import type { Cell, State, Store, Theme } from "./store.ts";
import type { Structure } from "./structure.ts";

const PREFIX = "glassformer.";

/** Memory may be forbidden (a sandboxed frame): then choices last as long as the page. */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    return;
  }
}

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** The page opens in the language that its document names; a switch lasts as long as the page. */
export function startingLanguage(document: string): Language {
  return document.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function startingTheme(): Theme {
  const chosen = recall("theme");
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

const DARK = "(prefers-color-scheme: dark)";

/** The colours in use: the reader's choice, or the system's; paper is light. */
export function coloursOf({ theme, systemIsDark, printing }: State): "light" | "dark" {
  if (printing) return "light";
  if (theme !== "system") return theme;
  return systemIsDark ? "dark" : "light";
}

/** Puts the colours on the document before anything is drawn or drawn again: what is painted reads them there. */
export function keepColours(store: Store): void {
  let remembered = store.get().theme;
  const apply = (): void => {
    const state = store.get();
    document.documentElement.dataset["theme"] = coloursOf(state);
    if (state.theme !== remembered) remember("theme", (remembered = state.theme));
  };
  apply();
  store.subscribe(apply);
  matchMedia(DARK).addEventListener("change", ({ matches }) => store.set({ systemIsDark: matches }));
}

/** Whether a model is small enough to be shown whole. */
export function isSmall(structure: Structure): boolean {
  return structure.blocks <= 1 && structure.quantity.size <= 40;
}

/** Parts that are open at first: all of a small model, the first attention and both ends of a larger one. */
function startingParts(structure: Structure): Set<string> {
  const { parts } = structure;
  const open = new Set<string>();
  const small = isSmall(structure);
  for (const part of parts) {
    const chosen = small || part.id === "blocks.0.attn" || part.id === "head" || part.id === "loss";
    if (!chosen) continue;
    open.add(part.id);
    if (part.block !== null) open.add(blockId(part.block));
  }
  return open;
}

/** The cell that the page's address names. */
export function cellOfAddress(hash: string, engine: Engine): Cell | null {
  const found = /^#cell=([\w.]+):(\d+)$/.exec(hash);
  if (!found || !engine.has(found[1])) return null;
  const flat = Number(found[2]);
  return flat < cellsOf(engine.shape(found[1])) ? { key: found[1], flat } : null;
}

export function startingState(header: Header, structure: Structure, engine: Engine, language: Language): State {
  return {
    language,
    theme: startingTheme(),
    systemIsDark: matchMedia(DARK).matches,
    view: "forward",
    selected: null,
    pointed: null,
    past: [],
    future: [],
    open: startingParts(structure),
    heads: {},
    labels: header.labels[0]?.id ?? "",
    digits: 6,
    stretched: false,
    dialog: null,
    walk: null,
    unfolded: {},
    shortcuts: recall("shortcuts") !== "off",
    version: engine.version,
    edited: false,
    notice: null,
    busy: false,
    printing: false,
  };
}
