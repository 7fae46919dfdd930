/** Where the book starts: read its data, put the shell around the chapters, open the place that the address names. */
import "katex/dist/katex.css";
import "../styles/theme.css";
import "../styles/base.css";
import "../styles/run.css";
import "../styles/parts.css";
import "../styles/matrices.css";
import "../styles/inspector.css";
import "../styles/sections.css";
import "../styles/print.css";
import "./styles/shell.css";
import "./styles/chapter.css";
import "./styles/figure.css";
import "./styles/live.css";
import "./styles/work.css";
import "./styles/paper.css";
import { type ComponentChild, options, render } from "preact";
import type { Session } from "../state/session.ts";
import { SessionContext } from "../state/session.ts";
import { keepColours, recall, startingLanguage } from "../state/settings.ts";
import { Store } from "../state/store.ts";
import { bookOf, type BookData } from "./data.ts";
import { onKey } from "./keys.ts";
import { Over } from "./over.tsx";
import { Shelf, rootSession } from "./shelf.ts";
import { Bar, Cover, Sections, Turn, WayContext } from "./shell.tsx";
import { BookContext, type Book, type BookState } from "./state.ts";
import { inWords } from "../i18n.ts";
import { BOOK_TEXTS } from "./texts.ts";
import { showTips } from "./tips.ts";
import { Way } from "./way.ts";

declare global {
  interface Window {
    /** For tests and the curious: the numbers behind the book, and what draws all of the chapter at once. */
    readonly glassformerBook?: { data: BookData; shelf: Shelf; complete: () => void };
  }
}

const STARTING: BookState = { chapter: null, order: "derive", pencil: false, searching: false, presented: null };
/** Milliseconds without a change before the address is written: browsers refuse to do that too often. */
const PAUSE = 250;

/** Paper is light and shows everything: drawn at once, before the browser takes its picture. */
function keepPaper({ store }: Session, way: Way): void {
  const flush = (printing: boolean) => (): void => {
    if (printing) way.complete();
    const before = options.debounceRendering;
    options.debounceRendering = (draw) => draw();
    store.set({ printing });
    options.debounceRendering = before;
  };
  window.addEventListener("beforeprint", flush(true));
  window.addEventListener("afterprint", flush(false));
}

/** Language and title on the document. */
function keepLanguage({ data, shelf, store }: Book): void {
  const apply = (): void => {
    const { language } = shelf.root.store.get();
    const { chapter } = store.get();
    const title = data.title?.[language] ?? inWords(language, BOOK_TEXTS.bookTitle);
    const shown = data.contents.find(({ number }) => number === chapter);
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    document.title = shown ? `${shown.number} ${shown.title[language]} · ${title}` : title;
  };
  apply();
  shelf.root.store.subscribe(apply);
  store.subscribe(apply);
}

/** Whether the page was opened a second time, by reloading it or by going back to it. */
function cameBack(): boolean {
  const [entry] = performance.getEntriesByType("navigation");
  return entry instanceof PerformanceNavigationTiming && entry.type !== "navigate";
}

function open(data: BookData): void {
  const root = rootSession(startingLanguage(document.documentElement.lang));
  let way: Way | undefined;
  let pause = 0;
  const shelf = new Shelf(data, root, () => {
    clearTimeout(pause);
    pause = window.setTimeout(() => way?.keep(), PAUSE);
  });
  const order = recall("order") === "compute" ? "compute" : "derive";
  const book: Book = { data, shelf, store: new Store<BookState>({ ...STARTING, order }) };
  keepColours(root.store);
  keepLanguage(book);
  way = new Way(book);
  const found = way;
  keepPaper(root, found);
  found.follow(location.hash);
  // The browser puts the reader back where the page was left: that place must be there.
  if (cameBack()) found.complete();
  const put = (id: string, content: ComponentChild): void => {
    const place = document.getElementById(id);
    if (!place) return;
    render(
      <BookContext.Provider value={book}>
        <WayContext.Provider value={found}>
          <SessionContext.Provider value={root}>{content}</SessionContext.Provider>
        </WayContext.Provider>
      </BookContext.Provider>,
      place,
    );
  };
  put("bar", <Bar />);
  put("cover", <Cover />);
  put("sections", <Sections />);
  put("turn", <Turn />);
  put("over", <Over />);
  const text = document.getElementById("text");
  if (text) showTips(text, data, () => root.store.get().language);
  document.addEventListener("keydown", (event) => onKey(event, book, found));
  Object.defineProperty(window, "glassformerBook", { value: Object.freeze({ data, shelf, complete: () => found.complete() }) });
}

try {
  open(bookOf(document));
} catch (error) {
  console.error(error);
  const place = document.getElementById("cover");
  if (place) render(<p role="alert">{error instanceof Error ? error.message : String(error)}</p>, place);
}
