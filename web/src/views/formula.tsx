/** Formulas: drawn by KaTeX when they come near the screen, opened and copied as LaTeX. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { typeset } from "./typeset.ts";

/** Whether the element has come within a screen of being visible (or everything is being printed). */
export function useNear<E extends Element>(): [(element: E | null) => void, boolean] {
  const printing = useStore((state) => state.printing);
  const [element, setElement] = useState<E | null>(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    if (!element || near) return;
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
  }, [element, near]);
  return [setElement, near || printing];
}

const waiting = new Set<() => void>();

/**
 * Does `draw` in a task of its own, after those that wait already; returns what cancels it. Many tables come near the
 * screen at once: drawn together they would hold scrolling up.
 */
function inTurn(draw: () => void): () => void {
  waiting.add(draw);
  if (waiting.size === 1) setTimeout(drawNext);
  return () => void waiting.delete(draw);
}

function drawNext(): void {
  const [draw] = waiting;
  if (!draw) return;
  draw();
  // What was drawn now is put on the page before the next turn.
  setTimeout(() => {
    waiting.delete(draw);
    if (waiting.size > 0) drawNext();
  });
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
