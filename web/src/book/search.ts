/** Searching the text of the book: by block, in one language, without regard to case. */

export interface Place {
  /** `6.3` */
  section: string;
  /** Position of the block among those of its chapter, counted from 0. */
  block: number;
  text: string;
}

export interface Hit extends Place {
  /** The text around the first word found: before it, the word itself, after it. */
  around: [before: string, found: string, after: string];
}

/** What the script draws is no text of the book; formulas inside a line are read from their source. */
const DRAWN = ".katex, .live, .exercise, .run, .chain, .formula, svg, .status";

/** `d_k` for `d_k`, `t_1,…,t_n` for `t_1, \ldots, t_n`: enough to be found and recognised. */
function plain(tex: string): string {
  const named = tex.replace(/\\ldots|\\dots/g, "…").replace(/\\(?:mathrm|operatorname|mathcal|bar|hat)\b\s*/g, "");
  return named.replace(/[\\{}]/g, "");
}

function textOf(block: Element): string {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, {
    acceptNode: (node) =>
      node instanceof Element && node.matches(DRAWN) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
  });
  const pieces: string[] = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node instanceof Text) pieces.push(node.data);
    else if (node instanceof HTMLElement && node.matches(".tex[data-tex]")) pieces.push(plain(node.dataset["tex"] ?? ""));
  }
  return pieces.join("").replace(/\s+/g, " ").trim();
}

/** Every heading and block of the chapters in `lang`, in order. */
export function placesOf(chapters: Iterable<Element>): Place[] {
  return [...chapters].flatMap((chapter) => {
    let block = 0;
    return [...chapter.querySelectorAll("section[data-section] > h1, section[data-section] > h2, section[data-section] > .block")].map(
      (element): Place => {
        const section = element.closest<HTMLElement>("section")?.dataset["section"] ?? "";
        return { section, block: element.matches(".block") ? block++ : block, text: textOf(element) };
      },
    );
  });
}

const AROUND = 48;

/** The places that have every word of `text`. */
export function hitsIn(places: readonly Place[], text: string): Hit[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return places.flatMap((place): Hit[] => {
    const low = place.text.toLowerCase();
    if (!words.every((word) => low.includes(word))) return [];
    const at = low.indexOf(words[0]);
    const end = at + words[0].length;
    const from = Math.max(0, at - AROUND);
    const before = (from > 0 ? "…" : "") + place.text.slice(from, at);
    const after = place.text.slice(end, end + AROUND) + (end + AROUND < place.text.length ? "…" : "");
    return [{ ...place, around: [before, place.text.slice(at, end), after] }];
  });
}
