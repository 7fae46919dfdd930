/** Single keys that work anywhere outside a field. */
import { goBack, goForward, openAll } from "./actions.ts";
import type { Session } from "./session.ts";
import { VIEWS, WITHOUT_UPDATE, type Theme } from "./store.ts";
import { walksFor } from "../walks.ts";

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function inField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

function stepWalk(session: Session, by: number): void {
  const { walk } = session.store.get();
  const steps = walksFor(session.header).find((each) => each.id === walk?.id)?.steps.length ?? 0;
  if (!walk || walk.step + by < 0 || walk.step + by >= steps) return;
  session.store.set({ walk: { ...walk, step: walk.step + by } });
}

function focusOn(id: string): void {
  const field = document.getElementById(id);
  field?.focus();
  if (field instanceof HTMLInputElement) field.select();
}

export function onKey(event: KeyboardEvent, session: Session): void {
  const { store, engine } = session;
  if (event.ctrlKey || event.metaKey || event.altKey || store.get().dialog || !store.get().shortcuts) return;
  if (inField(event.target)) {
    if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
    return;
  }
  const actions: Record<string, () => void> = {
    "[": () => goBack(session),
    "]": () => goForward(session),
    e: () => focusOn("edit-cell"),
    "/": () => focusOn("goto"),
    n: () => stepWalk(session, 1),
    p: () => stepWalk(session, -1),
    o: () => openAll(session, true),
    c: () => openAll(session, false),
    l: () => store.set({ language: store.get().language === "en" ? "zh" : "en" }),
    t: () => store.set({ theme: NEXT_THEME[store.get().theme] }),
    "?": () => store.set({ dialog: { kind: "help" } }),
  };
  VIEWS.forEach((view, at) => {
    if (WITHOUT_UPDATE.has(view) || engine.parameters.length > 0) actions[String(at + 1)] = () => store.set({ view });
  });
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
  if (!action) return;
  event.preventDefault();
  action();
}
