/** Drawing a chapter: what is on the screen at once, what lies below it while the browser has nothing else to do. */

/** On what has not been drawn yet: it takes no room. */
const LATER = "later";
/** Milliseconds of drawing in one task. */
const SLICE = 12;
/** Milliseconds after the page has loaded during which nothing but what is on the screen is drawn. */
const SETTLING = 600;
/** Milliseconds after which a busy browser draws on all the same. */
const PATIENCE = 300;

/** Pixels from the end of a block to the middle of the next one's first line: what begins lower is not seen. */
const APART = 40;
/** Pixels by which formulas of a window may grow when their fonts have come. */
const GROWTH = 40;

/** Draws an element piece by piece; a step that yields true has left it fit to be seen, and will only add below. */
export type Steps = (element: HTMLElement) => Iterator<boolean>;

/** What is drawn in one go: headings, and what blocks consist of. */
function piecesOf(chapter: HTMLElement): HTMLElement[] {
  return [...chapter.querySelectorAll<HTMLElement>(":scope > section > *")].flatMap((element) =>
    element.matches(".block") && element.firstElementChild ? ([...element.children] as HTMLElement[]) : [element],
  );
}

/**
 * The pieces of a chapter in their order. Nothing is ever drawn above something drawn: what the reader looks at stays
 * where it is.
 */
export class Drawing {
  private readonly waiting: HTMLElement[];
  private at: Iterator<boolean> | null = null;
  private cancel: (() => void) | null = null;

  constructor(
    private readonly chapter: HTMLElement,
    private readonly steps: Steps,
  ) {
    this.waiting = piecesOf(chapter);
    for (const piece of this.waiting) {
      piece.classList.add(LATER);
      piece.closest(".block")?.classList.add(LATER);
    }
  }

  /** Draws up to `goal`, a section or a block (null: the start), and the window full from there; the rest follows. */
  to(goal: Element | null): void {
    const target = goal?.matches("section") ? goal.firstElementChild : goal;
    while (target?.classList.contains(LATER) && this.step());
    // A place is read at the top of the window, the start of a chapter at the top of the page.
    const top = (): number => (target ?? document.documentElement).getBoundingClientRect().top;
    this.fill(top, APART + GROWTH);
    void document.fonts.ready.then(() => this.cancel && this.fill(top, APART));
    this.goOn();
  }

  /** Draws on in time for a reader who scrolls faster than the browser is idle. */
  keepAhead(): void {
    if (this.waiting.length > 0) this.fill(() => 0, -window.innerHeight);
  }

  /** Draws until at most `open` pixels are empty of a window that begins at `top`. */
  private fill(top: () => number, open: number): void {
    const missing = (): number => top() + window.innerHeight - this.chapter.getBoundingClientRect().bottom;
    while (missing() > open && this.more());
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

  /** Draws on to the end of a block or a part of one that may be long; false when nothing is left to draw. */
  private more(): boolean {
    let step = this.step();
    while (step === "amid") step = this.step();
    return step !== null;
  }

  /** The next step of drawing: whether this is a place to stop and look; null when nothing is left. */
  private step(): "amid" | "stop" | null {
    const [piece] = this.waiting;
    if (piece === undefined) return null;
    this.at ??= this.steps(piece);
    const { done, value } = this.at.next();
    if (!done && !value) return "amid";
    piece.classList.remove(LATER);
    piece.closest(".block")?.classList.remove(LATER);
    if (!done) return "stop";
    this.waiting.shift();
    this.at = null;
    return piece.nextElementSibling ? "amid" : "stop";
  }

  /** Draws the rest when there is time for it. */
  private goOn(): void {
    this.pause();
    let cancelled = false;
    let cancel = (): void => undefined;
    const slice = (): void => {
      if (cancelled || this.waiting.length === 0) return;
      cancel = whenIdle((left) => {
        const end = performance.now() + Math.min(SLICE, left());
        while (this.step() && performance.now() < end);
        slice();
      });
    };
    this.cancel = () => {
      cancelled = true;
      cancel();
    };
    void settled().then(slice);
  }
}

/** Calls back when the browser is idle, with the milliseconds left; returns what cancels it. */
function whenIdle(call: (left: () => number) => void): () => void {
  // Safari has no such callback.
  if (typeof window.requestIdleCallback !== "function") {
    const timer = setTimeout(() => call(() => SLICE));
    return () => clearTimeout(timer);
  }
  const request = requestIdleCallback((deadline) => call(() => deadline.timeRemaining()), { timeout: PATIENCE });
  return () => cancelIdleCallback(request);
}

/** Resolves when the page has loaded and the browser had time to show it. */
function settled(): Promise<void> {
  return new Promise((done) => {
    const soon = (): void => void setTimeout(done, SETTLING);
    if (document.readyState === "complete") soon();
    else window.addEventListener("load", soon, { once: true });
  });
}
