/** Formulas: drawn by KaTeX when they come near the screen, opened and copied as LaTeX. */
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { typeset } from "./typeset.ts";

/** Whether what would wait until it comes near the screen is drawn with the rest: it is known to be there. */
export const AtOnce = createContext(false);

/** Whether the element has come within a screen of being visible (or everything is being printed). */
export function useNear<E extends Element>(): [(element: E | null) => void, boolean] {
  const printing = useStore((state) => state.printing);
  const atOnce = useContext(AtOnce);
  const [element, setElement] = useState<E | null>(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    if (!element || near || atOnce) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) cancel ??= inTurn(() => setNear(true));
      },
      { rootMargin: "600px" },
    );
    let cancel: (() => void) | undefined;
    observer.observe(element);
    return () => {
      observer.disconnect();
      cancel?.();
    };
  }, [element, near, atOnce]);
  return [setElement, near || printing || atOnce];
}

interface Drawing {
  draw: () => void;
  /** A single symbol: several of these fit into one task. */
  light: boolean;
}

const waiting = new Set<Drawing>();
let waking = false;
/** Milliseconds of symbols in one task. */
const TURN = 8;

/**
 * Draws in a task of its own, after those that wait already; returns what cancels it. Many tables and formulas come near
 * the screen at once: drawn together they would hold scrolling up.
 */
function inTurn(draw: () => void, light = false): () => void {
  const drawing = { draw, light };
  waiting.add(drawing);
  wake();
  return () => void waiting.delete(drawing);
}

function wake(): void {
  if (waking || waiting.size === 0) return;
  waking = true;
  setTimeout(() => {
    waking = false;
    const began = performance.now();
    for (const drawing of waiting) {
      waiting.delete(drawing);
      drawing.draw();
      if (!drawing.light || performance.now() - began > TURN) break;
    }
    wake();
  });
}

/** A symbol in a line of text, drawn when it comes near the screen; plain text stands for it until then. */
export function LazyTex({ tex, plain }: { tex: string; plain: string }) {
  const printing = useStore((state) => state.printing);
  const atOnce = useContext(AtOnce);
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    if (printing || atOnce) return typeset(element, tex, false);
    let cancel: (() => void) | undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        cancel = inTurn(() => typeset(element, tex, false), true);
      },
      { rootMargin: "600px" },
    );
    element.textContent = plain;
    observer.observe(element);
    return () => {
      observer.disconnect();
      cancel?.();
    };
  }, [tex, printing, atOnce]);
  return <span ref={place} class="tex" />;
}

/** A formula in a line of text, drawn at once. */
export function Tex({ tex, display = false }: { tex: string; display?: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (place.current) typeset(place.current, tex, display);
  }, [tex, display]);
  return <span ref={place} class="tex" />;
}

/** A formula in a box: a click, or its small button, opens its LaTeX. */
export function Formula({ tex, lazy = true, label }: { tex: string; lazy?: boolean; label?: string }) {
  const { store } = useSession();
  const { t } = useSpeech();
  const [place, near] = useNear<HTMLDivElement>();
  const open = (): void => store.set({ dialog: { kind: "latex", source: tex } });
  const click = (event: MouseEvent): void => {
    const chosen = window.getSelection()?.toString() ?? "";
    if (chosen === "" && !(event.target as Element).closest("[data-op], button")) open();
  };
  return (
    <div class="formula" ref={place} onClick={click} title={t("openLatex")}>
      <div class="formula-body">
        {label !== undefined && <span class="formula-label">{label}</span>}
        {near || !lazy ? <Tex tex={tex} display /> : <span class="formula-waiting" />}
      </div>
      <button type="button" class="tex-button" onClick={open} aria-label={t("openLatex")}>
        TeX
      </button>
    </div>
  );
}
