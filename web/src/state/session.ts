/** What every view works on: the trace, the computer inside the page, and the store. */
import { createContext } from "preact";
import { useContext, useEffect, useReducer, useRef } from "preact/hooks";
import { pick, say, type Text, type Words } from "../i18n.ts";
import type { Trace } from "../data/trace.ts";
import type { Bilingual, Header } from "../data/types.ts";
import type { Style } from "../notation/symbols.ts";
import type { Engine } from "../notation/engine.ts";
import type { State, Store } from "./store.ts";
import type { Structure } from "./structure.ts";

export interface Session {
  trace: Trace;
  header: Header;
  structure: Structure;
  engine: Engine;
  style: Style;
  store: Store;
  /** Stops the recomputation under way, where one runs in slices. */
  running: AbortController | null;
  /** Texts along a dimension where the run itself has none: the words of a worked example. */
  texts?: Readonly<Record<string, readonly string[]>>;
  /** Tensors whose numbers tell places: computed from 0, read and written from 1. */
  places?: ReadonlySet<string>;
}

/** What readers see is so much more than what is computed: 1 where a tensor tells places. */
export function countedFrom({ places }: Session, key: string): 0 | 1 {
  return places?.has(key) ? 1 : 0;
}

export const SessionContext = createContext<Session | null>(null);

/** Stands before the ids of fields: a document may show several runs. */
export const IdContext = createContext("");

/** The id of a field, one of its kind in a run, in the document. */
export function useOwnId(id: string): string {
  return useContext(IdContext) + id;
}

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("a view was drawn outside the page");
  return session;
}

/** What `selector` reads of the page's state; the view is drawn again when that changes (by `Object.is`). */
export function useStore<T>(selector: (state: State) => T): T {
  return useStateOf(useSession().store, selector);
}

/** The same of any store. */
export function useStateOf<S extends object, T>(store: Store<S>, selector: (state: S) => T): T {
  const [, redraw] = useReducer<number, undefined>((count) => count + 1, 0);
  const latest = useRef(selector);
  latest.current = selector;
  const value = selector(store.get());
  const shown = useRef(value);
  shown.current = value;
  useEffect(() => {
    const look = (): void => {
      if (!Object.is(latest.current(store.get()), shown.current)) redraw(undefined);
    };
    look();
    return store.subscribe(look);
  }, [store]);
  return value;
}

export interface Speech {
  /** A sentence of the page in the reader's language. */
  t: (text: Text, words?: Words) => string;
  /** One of two given texts. */
  pick: (text: Bilingual) => string;
}

export function useSpeech(): Speech {
  const language = useStore((state) => state.language);
  return { t: (text, words) => say(language, text, words), pick: (text) => pick(language, text) };
}
