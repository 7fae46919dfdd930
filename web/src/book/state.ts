/** What the book shows besides its numbers: which chapter, in which order, with or without a pencil. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { inWords, type Words } from "../i18n.ts";
import { useStateOf, useStore } from "../state/session.ts";
import type { Store } from "../state/store.ts";
import type { BookData, Order } from "./data.ts";
import type { Shelf } from "./shelf.ts";
import { BOOK_TEXTS, type BookText } from "./texts.ts";

export interface BookState {
  /** Null shows the contents. */
  chapter: number | null;
  order: Order;
  /** Results are hidden, readers compute them. */
  pencil: boolean;
  searching: boolean;
  /** The block that the presenter shows, counted from 0; null outside a presentation. */
  presented: number | null;
}

export interface Book {
  data: BookData;
  shelf: Shelf;
  store: Store<BookState>;
}

export const BookContext = createContext<Book | null>(null);

export function useBook(): Book {
  const book = useContext(BookContext);
  if (!book) throw new Error("a view was drawn outside the book");
  return book;
}

/** What `selector` reads of the book's state. */
export function useBookState<T>(selector: (state: BookState) => T): T {
  return useStateOf(useBook().store, selector);
}

/** The book's own sentences in the reader's language. */
export function useBookSpeech(): (text: BookText, words?: Words) => string {
  const language = useStore((state) => state.language);
  return (text, words) => inWords(language, BOOK_TEXTS[text], words);
}

/** Chapters in the order that the reader chose; without one for it, as they are numbered. */
export function orderedChapters({ contents, orders }: BookData, order: Order): number[] {
  const known = new Set(contents.map(({ number }) => number));
  const chosen = (orders[order] ?? []).filter((number) => known.has(number));
  return chosen.length > 0 ? chosen : [...known];
}
