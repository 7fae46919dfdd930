/** What pointing at a number or a symbol shows, and which symbols are the same. */
import type { Bilingual, Language } from "../data/types.ts";
import { type Text, inWords, say } from "../i18n.ts";
import { full } from "../state/text.ts";
import { typeset } from "../views/typeset.ts";
import type { BookData } from "./data.ts";
import { BOOK_TEXTS } from "./texts.ts";

interface SymbolFacts extends Bilingual {
  latex: string;
  kind: string;
  axes: [letter: string, dimension: string][];
}

const TOLD = "data.num, .tex.symbol";

function line(className: string, ...children: (string | Node)[]): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.append(...children);
  return element;
}

/** The exact number, and where it comes from. */
function aboutNumber(element: HTMLDataElement, language: Language, data: BookData): HTMLElement[] {
  const { from = "", name = "" } = element.dataset;
  const run = data.runs[from]?.header.title[language] ?? from;
  const place = inWords(language, from in data.examples ? BOOK_TEXTS.inExample : BOOK_TEXTS.inRun, { name, run });
  return [line("digits", full(Number(element.value))), line("quiet", place)];
}

function aboutSymbol(element: HTMLElement, language: Language): HTMLElement[] {
  const facts = JSON.parse(element.dataset["symbol"] ?? "{}") as SymbolFacts;
  const symbol = line("tex");
  typeset(symbol, facts.latex, false);
  const shape = facts.axes.map(([, dimension]) => dimension).join(" × ");
  const kind = `kind_${facts.kind}`;
  const kindText = KINDS.find((each) => each === kind);
  const told = [shape || inWords(language, BOOK_TEXTS.oneNumber), kindText ? say(language, kindText) : facts.kind];
  return [line("tip-name", symbol, ` ${facts[language]}`), line("quiet", told.join(" · "))];
}

const KINDS = [
  "kind_input", "kind_parameter", "kind_intermediate", "kind_coefficient", "kind_probability", "kind_loss", "kind_gradient",
] as const satisfies readonly Text[]; // prettier-ignore

/** Listens for pointer and focus inside `text`; `language` is asked at each showing. */
export function showTips(text: HTMLElement, data: BookData, language: () => Language): void {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  let shown: HTMLElement | null = null;

  const light = (element: HTMLElement, on: boolean): void => {
    const tex = element.dataset["tex"];
    if (tex === undefined) return;
    for (const other of element.closest(".chapter")?.querySelectorAll<HTMLElement>(".tex[data-tex]") ?? []) {
      if (other.dataset["tex"] === tex) other.classList.toggle("lit", on);
    }
  };
  const hide = (): void => {
    if (!shown) return;
    light(shown, false);
    shown.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };
  const show = (element: HTMLElement): void => {
    if (element === shown) return;
    hide();
    shown = element;
    const lines = element instanceof HTMLDataElement ? aboutNumber(element, language(), data) : aboutSymbol(element, language());
    tip.replaceChildren(...lines);
    tip.hidden = false;
    element.setAttribute("aria-describedby", "tip");
    light(element, true);
    put(tip, element);
  };
  const told = (target: EventTarget | null): HTMLElement | null =>
    target instanceof Element ? target.closest<HTMLElement>(TOLD) : null;
  const look = (event: Event): void => {
    const element = told(event.target);
    if (element) show(element);
    else hide();
  };
  text.addEventListener("pointerover", look);
  text.addEventListener("pointerleave", hide);
  text.addEventListener("focusin", look);
  text.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  window.addEventListener("scroll", hide, { passive: true });
}

/** Below the element, within the window; above it where there is no room. */
function put(tip: HTMLElement, element: HTMLElement): void {
  const at = element.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8));
  const below = at.bottom + 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${below + height > window.innerHeight ? at.top - height - 6 : below}px`;
}
