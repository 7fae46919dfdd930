/** Where the reader is: the chapter shown, the address, the way to another place; and one block at a time. */
import type { Language } from "../data/types.ts";
import { enliven } from "./chapter.tsx";
import { Drawing } from "./drawing.ts";
import { addressText, parseAddress, type Address } from "./links.ts";
import type { Book } from "./state.ts";

/** Pixels from the top of the window down to where reading begins. */
const TOP = 120;

function chapterOf(section: string): number | null {
  return section === "" ? null : Number.parseInt(section, 10);
}

/** The article of a chapter in one language. */
export function articleOf(chapter: number, language: Language): HTMLElement | null {
  return document.querySelector<HTMLElement>(
    `article.chapter[data-chapter="${chapter}"][lang|="${language}"]`,
  );
}

function blocksOf(chapter: HTMLElement): HTMLElement[] {
  return [...chapter.querySelectorAll<HTMLElement>(":scope > section > .block")];
}

/** The blocks of the chapter that is shown. */
export function blocksShown(): HTMLElement[] {
  const chapter = document.querySelector<HTMLElement>("article.chapter.shown");
  return chapter ? blocksOf(chapter) : [];
}

export class Way {
  private section = "";
  private readonly drawings = new Map<HTMLElement, Drawing>();
  /** Of the chapter that is shown. */
  private drawing: Drawing | null = null;

  constructor(private readonly book: Book) {
    const { root } = book.shelf;
    let { language } = root.store.get();
    root.store.subscribe(() => {
      const now = root.store.get().language;
      if (now === language) return;
      language = now;
      const at = this.blockRead();
      this.draw((chapter) => (at > 0 ? (blocksOf(chapter).at(at) ?? null) : null));
      if (at > 0) blocksShown().at(at)?.scrollIntoView({ block: "start" });
      this.keep();
    });
    // The address that was asked for: by now a late scroll may have written where the reader was before.
    window.addEventListener("hashchange", ({ newURL }) => this.follow(new URL(newURL).hash));
    window.addEventListener("scroll", () => this.noticeSection(), { passive: true });
  }

  private get language(): Language {
    return this.book.shelf.root.store.get().language;
  }

  /** Opens what an address names; a strange address changes nothing. */
  follow(hash: string): void {
    const address = parseAddress(hash);
    if (!address) return;
    if (address.changes.length > 0) this.book.shelf.restore(address);
    this.show(address);
  }

  /** Goes to a place of the book at once; the way back is the browser's. */
  go(section: string): void {
    const text = addressText({ language: this.language, section, changes: this.book.shelf.changes() });
    try {
      if (text !== location.hash) history.pushState(null, "", text);
    } catch {
      // As in `keep`: then there is no way back, but the place is shown all the same.
    }
    this.follow(text);
  }

  private show({ language, section }: Address): void {
    const { root } = this.book.shelf;
    this.section = section;
    const chapter = chapterOf(section);
    const known = chapter === null || articleOf(chapter, language) !== null;
    this.book.store.set({ chapter: known ? chapter : null, presented: null, searching: false });
    if (root.store.get().language !== language) root.store.set({ language });
    const goal = section.includes(".") ? document.getElementById(`${language}-${section}`) : null;
    this.draw(() => goal);
    this.keep();
    if (goal) goal.scrollIntoView({ block: "start" });
    else window.scrollTo(0, 0);
  }

  /** Shows the chapter in the reader's language, the others not; `goal` tells the place in it that is read first. */
  private draw(goal: (chapter: HTMLElement) => Element | null): void {
    const { chapter } = this.book.store.get();
    const shown = chapter === null ? null : articleOf(chapter, this.language);
    // At once, not with the next drawing: where the text lies decides where the browser scrolls to.
    document.body.classList.toggle("reading", shown !== null);
    for (const article of document.querySelectorAll("article.chapter.shown")) {
      if (article !== shown) article.classList.remove("shown");
    }
    this.drawing?.pause();
    this.drawing = shown && this.drawingOf(shown);
    if (!shown) return;
    shown.classList.add("shown");
    this.drawing?.to(goal(shown));
  }

  private drawingOf(chapter: HTMLElement): Drawing {
    const known = this.drawings.get(chapter);
    if (known) return known;
    const made = new Drawing(chapter, (element) => enliven(element, this.book));
    this.drawings.set(chapter, made);
    return made;
  }

  /** Draws all of the chapter that is shown, also what would have been drawn later. */
  complete(): void {
    this.drawing?.complete();
  }

  /** The block at the top of the window, counted from 0. */
  private blockRead(): number {
    return blocksShown().findIndex((each) => each.getBoundingClientRect().bottom > TOP);
  }

  /** Writes place and changes into the address; from there a link brings back both. */
  keep(): void {
    const section = this.book.store.get().chapter === null ? "" : this.section;
    const text = addressText({ language: this.language, section, changes: this.book.shelf.changes() });
    try {
      if (text !== location.hash) history.replaceState(null, "", text);
    } catch {
      // A page inside a sandboxed frame may not change its address; nothing else depends on it.
    }
  }

  /** The section under the reader's eyes goes into the address. */
  private noticeSection(): void {
    if (this.book.store.get().chapter === null || this.book.store.get().presented !== null) return;
    this.drawing?.keepAhead();
    const sections = [...document.querySelectorAll<HTMLElement>("article.chapter.shown > section")];
    const drawn = sections.filter((each) => each.offsetHeight > 0);
    const reached = drawn.findLast((each) => each.getBoundingClientRect().top < TOP) ?? drawn.at(0);
    const section = reached?.dataset["section"];
    if (section === undefined || section === this.section) return;
    this.section = section;
    this.keep();
    document.dispatchEvent(new CustomEvent("section", { detail: section }));
  }

  /** Shows one block alone; null shows the chapter again. */
  present(at: number | null): void {
    this.complete();
    const blocks = blocksShown();
    if (at !== null && (at < 0 || at >= blocks.length)) return;
    this.book.store.set({ presented: at });
    document.body.classList.toggle("presenting", at !== null);
    for (const element of document.querySelectorAll(".now")) element.classList.remove("now");
    if (at === null) {
      const last = blocks.at(0);
      last?.closest("section")?.scrollIntoView({ block: "start" });
      return;
    }
    blocks[at].classList.add("now");
    blocks[at].closest("section")?.classList.add("now");
    window.scrollTo(0, 0);
  }
}
