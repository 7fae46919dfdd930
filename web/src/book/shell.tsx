/** Around the chapters: the bar above, the cover with the contents, the sections beside, the way on below. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { remember } from "../state/settings.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import type { Theme } from "../state/store.ts";
import { addressText } from "./links.ts";
import { orderedChapters, useBook, useBookSpeech, useBookState } from "./state.ts";
import type { Order } from "./data.ts";
import type { Way } from "./way.ts";

export const WayContext = createContext<Way | null>(null);

export function useWay(): Way {
  const way = useContext(WayContext);
  if (!way) throw new Error("a view was drawn outside the book");
  return way;
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function Tools() {
  const { store } = useSession();
  const book = useBook();
  const way = useWay();
  const { t } = useSpeech();
  const say = useBookSpeech();
  const theme = useStore((state) => state.theme);
  const pencil = useBookState((state) => state.pencil);
  const chapter = useBookState((state) => state.chapter);
  const [told, setTold] = useState("");
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => menu.current?.removeAttribute("open");
  const copyLink = async (): Promise<void> => {
    way.keep();
    try {
      await navigator.clipboard.writeText(location.href);
      setTold(say("linkCopied"));
    } catch {
      setTold(say("linkByHand"));
    }
  };
  return (
    <details class="menu" ref={menu} onToggle={() => setTold("")}>
      <summary>{say("tools")}</summary>
      <div>
        <label class="check">
          <input type="checkbox" checked={pencil} onChange={() => book.store.set({ pencil: !pencil })} /> {say("pencil")}
        </label>
        {chapter !== null && (
          <>
            <button
              type="button"
              data-tool="present"
              onClick={() => {
                close();
                way.present(0);
              }}
            >
              {say("present")}
            </button>
            <button
              type="button"
              onClick={() => {
                close();
                window.print();
              }}
            >
              {say("print")}
            </button>
          </>
        )}
        <button type="button" onClick={() => void copyLink()}>
          {say("copyLink")}
        </button>
        <button type="button" data-tool="theme" onClick={() => store.set({ theme: NEXT_THEME[theme] })}>
          {t(`theme_${theme}`)}
        </button>
        {told && (
          <p class="small" role="status">
            {told}
          </p>
        )}
      </div>
    </details>
  );
}

export function Bar() {
  const { store } = useSession();
  const book = useBook();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const language = useStore((state) => state.language);
  const chapter = useBookState((state) => state.chapter);
  const shown = book.data.contents.find(({ number }) => number === chapter);
  const other = language === "en" ? "zh" : "en";
  return (
    <>
      <a class="skip" href="#text" onClick={(event) => (event.preventDefault(), document.getElementById("text")?.focus())}>
        {say("skip")}
      </a>
      <a class="to-contents" href={addressText({ language, section: "", changes: [] })}>
        {say("contents")}
      </a>
      <span class="running-head">{shown ? pick(shown.title) : ""}</span>
      <span class="bar-tools">
        <button type="button" data-tool="search" onClick={() => book.store.set({ searching: true })}>
          {say("search")}
        </button>
        <button type="button" lang={other === "zh" ? "zh-CN" : "en"} data-tool="language" onClick={() => store.set({ language: other })}>
          {other === "zh" ? "中文" : "English"}
        </button>
        <Tools />
      </span>
    </>
  );
}

const ORDERS = [
  ["derive", "orderDerive", "orderDeriveTold"],
  ["compute", "orderCompute", "orderComputeTold"],
] as const satisfies readonly (readonly [Order, string, string])[];

function OrderChoice() {
  const book = useBook();
  const say = useBookSpeech();
  const order = useBookState((state) => state.order);
  return (
    <fieldset class="orders">
      <legend>{say("readingOrder")}</legend>
      {ORDERS.map(([each, name, told]) => (
        <label key={each} class={each === order ? "chosen" : ""}>
          <input
            type="radio"
            name="order"
            value={each}
            checked={each === order}
            onChange={() => {
              book.store.set({ order: each });
              remember("order", each);
            }}
          />
          <span>
            <b>{say(name)}</b>
            <small>{say(told)}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** Title and contents; shown when no chapter is. */
export function Cover() {
  const { data } = useBook();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const language = useStore((state) => state.language);
  const chapter = useBookState((state) => state.chapter);
  const order = useBookState((state) => state.order);
  if (chapter !== null) return null;
  const link = (section: string): string => addressText({ language, section, changes: [] });
  return (
    <div class="cover">
      <h1>{data.title ? pick(data.title) : say("bookTitle")}</h1>
      <p class="cover-told">{say("bookTold")}</p>
      <OrderChoice />
      <h2 class="sr">{say("contents")}</h2>
      <ol class="contents">
        {orderedChapters(data, order).map((number) => {
          const entry = data.contents.find((each) => each.number === number);
          if (!entry) return null;
          const sections = entry.sections.filter((section) => section.number.includes("."));
          return (
            <li key={number}>
              <a class="contents-chapter" href={link(String(number))}>
                <span class="number">{number}</span> {pick(entry.title)}
              </a>
              {sections.length > 0 && (
                <ul>
                  {sections.map((section) => (
                    <li key={section.number}>
                      <a href={link(section.number)}>
                        <span class="number">{section.number}</span> {pick(section.title)}
                      </a>
                    </li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** The sections of the chapter, the one being read marked. */
export function Sections() {
  const { data } = useBook();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const language = useStore((state) => state.language);
  const chapter = useBookState((state) => state.chapter);
  const [reading, setReading] = useState("");
  useEffect(() => {
    const look = (event: Event): void => setReading(String((event as CustomEvent<string>).detail));
    document.addEventListener("section", look);
    return () => document.removeEventListener("section", look);
  }, []);
  const entry = data.contents.find(({ number }) => number === chapter);
  if (!entry || entry.sections.length < 2) return null;
  return (
    <>
      <p class="sections-title">{say("onThisPage")}</p>
      <ul>
        {entry.sections
          .filter(({ number }) => number.includes("."))
          .map(({ number, title }) => (
            <li key={number}>
              <a
                href={addressText({ language, section: number, changes: [] })}
                aria-current={number === reading ? "location" : undefined}
              >
                <span class="number">{number}</span> {pick(title)}
              </a>
            </li>
          ))}
      </ul>
    </>
  );
}

/** The chapters before and after in the chosen order, and the contents between them. */
export function Turn() {
  const { data } = useBook();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const language = useStore((state) => state.language);
  const chapter = useBookState((state) => state.chapter);
  const order = useBookState((state) => state.order);
  if (chapter === null) return null;
  const chapters = orderedChapters(data, order);
  const at = chapters.indexOf(chapter);
  const beside = (by: number) => data.contents.find(({ number }) => number === chapters[at + by]);
  const [before, after] = [beside(-1), beside(1)];
  const link = (section: string): string => addressText({ language, section, changes: [] });
  return (
    <nav class="turn" aria-label={say("contents")}>
      {before ? (
        <a rel="prev" href={link(String(before.number))}>
          <small>{say("previous")}</small>
          {before.number} {pick(before.title)}
        </a>
      ) : (
        <span />
      )}
      <a class="turn-contents" href={link("")}>
        {say("contents")}
      </a>
      {after ? (
        <a rel="next" href={link(String(after.number))}>
          <small>{say("next")}</small>
          {after.number} {pick(after.title)}
        </a>
      ) : (
        <span />
      )}
    </nav>
  );
}
