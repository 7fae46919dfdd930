/** A chapter comes alive when it is first shown: formulas are drawn, examples, exercises and runs put in their places. */
import { type ComponentChildren, render } from "preact";
import { IdContext, SessionContext, type Session } from "../state/session.ts";
import { VIEWS, type View } from "../state/store.ts";
import { typeset } from "../views/typeset.ts";
import { LiveExample } from "./example.tsx";
import { ExerciseView } from "./exercise.tsx";
import { ChainView, TwoFaces } from "./pieces.tsx";
import { RunView } from "./run.tsx";
import { SaveFigure } from "./save.tsx";
import { BookContext, type Book } from "./state.ts";

function put(place: Element, book: Book, session: Session, content: ComponentChildren): void {
  render(
    <BookContext.Provider value={book}>
      <SessionContext.Provider value={session}>{content}</SessionContext.Provider>
    </BookContext.Provider>,
    place,
  );
}

/** The entry of a table under an untrusted name; undefined where it has none of its own. */
function own<T>(table: Record<string, T>, name: string | undefined): T | undefined {
  return name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

/**
 * Figures share the name of their arrow head. In a browser's eyes it means the first of the document, and that one may lie
 * in a chapter that is not shown, where nothing can be borrowed from it: each figure gets a name of its own.
 */
function keepOwnNames(place: HTMLElement): void {
  const chapter = place.closest("section")?.id ?? "";
  for (const named of place.querySelectorAll("svg [id]")) {
    const [before, after] = [`url(#${named.id})`, `${named.id}-${chapter}`];
    for (const user of place.querySelectorAll(`[marker-end="${before}"]`)) user.setAttribute("marker-end", `url(#${after})`);
    named.id = after;
  }
}

/** Fills a place; at once, or from top to bottom with a stop wherever the place may be seen as it is. */
type Maker = (place: HTMLElement, book: Book) => void | Generator<void>;

/** A run is longer than a window. */
function* partByPart(place: HTMLElement, book: Book, session: Session): Generator<void> {
  const { run = "", view = "" } = place.dataset;
  const name = [place.closest("section")?.id, run, view, ""].join("-");
  const show = (most: number): void =>
    put(
      place,
      book,
      session,
      <IdContext.Provider value={name}>
        <RunView most={most} />
      </IdContext.Provider>,
    );
  for (let most = 1; most < session.structure.parts.length; most++) {
    show(most);
    yield;
  }
  show(Infinity);
}

const MAKERS: Record<string, Maker> = {
  ".formula[data-index]": (place, book) => {
    const { index = "", matrix } = place.dataset;
    put(place, book, book.shelf.root, <TwoFaces index={index} matrix={matrix ?? null} />);
  },
  ".chain[data-chain]": (place, book) => {
    const chain = own(book.data.chains, place.dataset["chain"]);
    if (chain) put(place, book, book.shelf.root, <ChainView chain={chain} />);
  },
  ".live[data-example]": (place, book) => {
    const example = own(book.data.examples, place.dataset["example"]);
    if (example) put(place, book, book.shelf.example(example.id), <LiveExample example={example} />);
  },
  ".exercise[data-exercise]": (place, book) => {
    const exercise = own(book.data.exercises, place.dataset["exercise"]);
    if (exercise) put(place, book, book.shelf.root, <ExerciseView exercise={exercise} />);
  },
  ".run[data-run]": (place, book) => {
    const { run = "", view } = place.dataset;
    const shown: View = VIEWS.find((each) => each === view) ?? "forward";
    return own(book.data.runs, run) && partByPart(place, book, book.shelf.run(run, shown));
  },
  "figure.drawn": (place, book) => {
    keepOwnNames(place);
    const tools = document.createElement("div");
    tools.className = "figure-tools";
    place.append(tools);
    const name = place.dataset["figure"] ?? "figure";
    put(tools, book, book.shelf.root, <SaveFigure name={name} place={() => place.querySelector("svg")} />);
  },
};

const PLACES = Object.entries(MAKERS);

function* fill(place: HTMLElement, book: Book): Generator<boolean> {
  for (const [selector, make] of PLACES) {
    if (!place.matches(selector)) continue;
    for (const _ of make(place, book) ?? []) yield true;
    yield false;
  }
}

/** Draws a piece of a chapter with all that it holds; yields whether it is fit to be seen although more will come below. */
export function* enliven(piece: HTMLElement, book: Book): Generator<boolean> {
  for (const place of piece.querySelectorAll<HTMLElement>(".tex[data-tex]")) {
    typeset(place, place.dataset["tex"] ?? "", false);
    yield false;
  }
  for (const place of piece.querySelectorAll<HTMLElement>("data.num, .tex.symbol")) place.tabIndex = 0;
  yield* fill(piece, book);
  // What stands inside another thing is not the last of its piece: it is seen when all is there.
  for (const place of piece.querySelectorAll<HTMLElement>(PLACES.map(([selector]) => selector).join())) {
    for (const _ of fill(place, book)) yield false;
  }
}
