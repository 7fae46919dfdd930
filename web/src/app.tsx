/** The page: head, run, map, way, inspector; and what belongs to the window: keys, theme, address, paper. */
import { options, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { onKey } from "./state/keyboard.ts";
import { MarksContext, marksOf } from "./state/marks.ts";
import { picture } from "./state/text.ts";
import type { Cell } from "./state/store.ts";
import { SessionContext, useSession, useSpeech, useStore, type Session } from "./state/session.ts";
import { Derivations } from "./views/derivations.tsx";
import { Dialogs } from "./views/dialogs.tsx";
import { Inspector } from "./views/inspector.tsx";
import { Lemmas } from "./views/lemmas.tsx";
import { WayMap } from "./views/map.tsx";
import { Parts } from "./views/parts.tsx";
import { Probes } from "./views/probes.tsx";
import { RunBar } from "./views/runbar.tsx";
import { Legend, TopBar, Views } from "./views/topbar.tsx";
import { UpdatePanel } from "./views/update.tsx";

/** The language on the document. */
function useLanguage(): void {
  const language = useStore((state) => state.language);
  const { pick } = useSpeech();
  const { header } = useSession();
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    document.title = `${picture(pick(header.title))} · glassformer`;
  }, [language]);
}

/** Paper shows everything: drawn at once, before the browser takes its picture. */
function usePrinting(): void {
  const { store } = useSession();
  useLayoutEffect(() => {
    const flush = (printing: boolean) => (): void => {
      const before = options.debounceRendering;
      options.debounceRendering = (draw) => draw();
      store.set({ printing });
      options.debounceRendering = before;
    };
    const [begin, end] = [flush(true), flush(false)];
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, [store]);
}

function useKeys(): void {
  const session = useSession();
  // With the first drawing, not after it: a key pressed early must not be lost.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event, session);
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [session]);
}

/** The looked-at cell stands in the address, and its table comes into view. */
function useSelection(): void {
  const selected = useStore((state) => state.selected);
  const view = useStore((state) => state.view);
  useEffect(() => {
    if (!selected) return;
    try {
      history.replaceState(null, "", `#cell=${selected.key}:${selected.flat}`);
    } catch {
      // A page inside a sandboxed frame may not change its address; nothing else depends on it.
    }
    // Once for what is drawn already, once more when formulas on the way there have found their height.
    const soon = requestAnimationFrame(() => reveal(selected));
    const later = setTimeout(() => reveal(selected), 300);
    return () => {
      cancelAnimationFrame(soon);
      clearTimeout(later);
    };
  }, [selected, view]);
}

/** Brings a cell into the free part of the window, between the bar above and (on a phone) the panel below. */
function reveal({ key, flat }: Cell): void {
  const goal =
    document.querySelector(`main [data-cell="${CSS.escape(`${key}:${flat}`)}"]`) ??
    document.querySelector(`main [data-heat="${CSS.escape(key)}"]`) ??
    cardOf(key);
  if (!goal) return;
  const panel = document.getElementById("inspector");
  const covered = panel && getComputedStyle(panel).position === "fixed" ? panel.getBoundingClientRect().height : 0;
  const { top, bottom } = goal.getBoundingClientRect();
  if (top < BAR || bottom > window.innerHeight - covered) goal.scrollIntoView({ block: "center", inline: "nearest" });
}

/** Height of the bar that stays at the top of the window. */
const BAR = 64;

function cardOf(key: string): Element | null {
  return document.getElementById(`card-${key.replace(/\.(grad|new|after)$/, "")}`);
}

/** Marks what the looked-at cell reads and what reads it. A choice draws this again, and of what is in it only the marks. */
function Selection({ children }: { children: ComponentChildren }) {
  const session = useSession();
  const selected = useStore((state) => state.selected);
  const version = useStore((state) => state.version);
  const marks = useMemo(() => marksOf(session, selected), [selected, version]);
  useSelection();
  return <MarksContext.Provider value={marks}>{children}</MarksContext.Provider>;
}

function Page() {
  const { t } = useSpeech();
  const view = useStore((state) => state.view);
  const main = useRef<HTMLElement>(null);
  useLanguage();
  usePrinting();
  useKeys();
  return (
    <Selection>
      <a class="skip" href="#way">
        {t("skip")}
      </a>
      <TopBar />
      <RunBar />
      <Views />
      <div class={view === "probes" ? "columns without-map" : "columns"}>
        {view !== "probes" && <WayMap />}
        <main id="way" ref={main} tabIndex={-1}>
          {view === "probes" ? (
            <Probes />
          ) : (
            <>
              <Legend />
              {view === "update" && <UpdatePanel />}
              <Parts />
              <Derivations />
              <Lemmas />
            </>
          )}
        </main>
        <Inspector />
      </div>
      <Dialogs />
    </Selection>
  );
}

export function App({ session }: { session: Session }) {
  return (
    <SessionContext.Provider value={session}>
      <Page />
    </SessionContext.Provider>
  );
}
