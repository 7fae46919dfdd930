/** Drawing a chapter: what is on the screen at once, what lies below it while the browser has nothing else to do. */

/** On what has not been drawn yet: it takes no room. */
const LATER = "later";
/** Milliseconds of drawing in one task. */
const SLICE = 12;
/** Milliseconds after which a busy browser draws on all the same. */
const PATIENCE = 300;

/** Draws an element piece by piece, a piece at each step. */
export type Steps = (element: HTMLElement) => Iterator<unknown>;

/**
 * Headings and blocks of a chapter in their order. Nothing is ever drawn above something drawn: what the reader looks at
 * stays where it is.
 */
export class Drawing {
  private readonly waiting: HTMLElement[];
  private at: Iterator<unknown> | null = null;
  private cancel: (() => void) | null = null;

  constructor(
    private readonly chapter: HTMLElement,
    private readonly steps: Steps,
  ) {
    this.waiting = [...chapter.querySelectorAll<HTMLElement>(":scope > section > *")];
    for (const element of this.waiting) element.classList.add(LATER);
  }

  /** Draws up to `goal`, a section or a block (null: the start), and the window full from there; the rest follows. */
  to(goal: Element | null): void {
    const target = goal?.matches("section") ? goal.firstElementChild : goal;
    while (target?.classList.contains(LATER) && this.step());
    const from = target ?? this.chapter;
    const room = (): number => window.innerHeight + from.getBoundingClientRect().top;
    while (this.chapter.getBoundingClientRect().bottom < room() && this.element());
    this.goOn();
  }

  /** Draws everything now. */
  complete(): void {
    this.pause();
    while (this.step());
  }

  /** Draws nothing more until it is asked to. */
  pause(): void {
    this.cancel?.();
    this.cancel = null;
  }

  /** One whole element; false when there is none left. */
  private element(): boolean {
    const [element] = this.waiting;
    while (this.waiting[0] === element && this.step());
    return element !== undefined;
  }

  /** One piece of an element, which shows when all of it is drawn; false when nothing is left. */
  private step(): boolean {
    const [element] = this.waiting;
    if (element === undefined) return false;
    this.at ??= this.steps(element);
    if (this.at.next().done) {
      element.classList.remove(LATER);
      this.waiting.shift();
      this.at = null;
    }
    return true;
  }

  private goOn(): void {
    this.pause();
    if (this.waiting.length === 0) return;
    this.cancel = whenIdle((left) => {
      const end = performance.now() + Math.min(SLICE, left());
      do {
        if (!this.step()) break;
      } while (performance.now() < end);
      this.goOn();
    });
  }
}

/** Calls back when the page is there and the browser idle, with the milliseconds left; returns what cancels it. */
function whenIdle(call: (left: () => number) => void): () => void {
  const stop = new AbortController();
  const idle = (): void => {
    // Safari has no such callback.
    if (typeof window.requestIdleCallback !== "function") {
      const timer = setTimeout(() => call(() => SLICE));
      stop.signal.addEventListener("abort", () => clearTimeout(timer));
      return;
    }
    const request = requestIdleCallback((deadline) => call(() => deadline.timeRemaining()), { timeout: PATIENCE });
    stop.signal.addEventListener("abort", () => cancelIdleCallback(request));
  };
  if (document.readyState === "complete") idle();
  else window.addEventListener("load", idle, { once: true, signal: stop.signal });
  return () => stop.abort();
}
