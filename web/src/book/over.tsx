/** What lies over the page: the search, and the presenter's line. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useStore } from "../state/session.ts";
import { hitsIn, placesOf, type Hit } from "./search.ts";
import { useWay } from "./shell.tsx";
import { useBook, useBookSpeech, useBookState } from "./state.ts";
import { blocksShown } from "./way.ts";

const MOST_HITS = 40;

function SearchDialog() {
  const book = useBook();
  const way = useWay();
  const say = useBookSpeech();
  const language = useStore((state) => state.language);
  const [text, setText] = useState("");
  const dialog = useRef<HTMLDialogElement>(null);
  const places = useMemo(
    () => placesOf(document.querySelectorAll(`article.chapter[lang|="${language}"]`)),
    [language],
  );
  const hits = useMemo(() => hitsIn(places, text), [places, text]);
  useEffect(() => dialog.current?.showModal(), []);
  const go = ({ section, block }: Hit): void => {
    way.go(section);
    way.complete();
    // After the chapter is drawn, the block itself comes into view, marked for a moment.
    requestAnimationFrame(() => {
      const found = blocksShown().at(block);
      found?.scrollIntoView({ block: "center" });
      found?.classList.add("found");
      setTimeout(() => found?.classList.remove("found"), 2500);
    });
  };
  return (
    <dialog
      ref={dialog}
      class="search"
      aria-label={say("search")}
      onClose={() => book.store.set({ searching: false })}
      onClick={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <div class="search-body">
        <input
          type="search"
          value={text}
          placeholder={say("searchFor")}
          aria-label={say("searchFor")}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && hits.length > 0) go(hits[0]);
          }}
        />
        <p class="quiet small" role="status">
          {text.trim() === ""
            ? ""
            : hits.length === 0
              ? say("searchNone", { text: text.trim() })
              : say(hits.length > MOST_HITS ? "searchFirst" : "searchCount", { count: hits.length, shown: MOST_HITS })}
        </p>
        <ol class="hits">
          {hits.slice(0, MOST_HITS).map((hit, k) => (
            <li key={k}>
              <button type="button" onClick={() => go(hit)}>
                <span class="number">{hit.section}</span>
                <span>
                  {hit.around[0]}
                  <mark>{hit.around[1]}</mark>
                  {hit.around[2]}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </div>
    </dialog>
  );
}

function Presenter({ at }: { at: number }) {
  const way = useWay();
  const say = useBookSpeech();
  const count = blocksShown().length;
  return (
    <div class="presenter">
      <button type="button" disabled={at === 0} aria-label={say("previous")} onClick={() => way.present(at - 1)}>
        ←
      </button>
      <span class="digits">
        {at + 1} / {count}
      </span>
      <button type="button" disabled={at + 1 >= count} aria-label={say("next")} onClick={() => way.present(at + 1)}>
        →
      </button>
      <span class="quiet small">{say("presentKeys")}</span>
      <button type="button" onClick={() => way.present(null)}>
        {say("presentEnd")}
      </button>
    </div>
  );
}

export function Over() {
  const searching = useBookState((state) => state.searching);
  const presented = useBookState((state) => state.presented);
  return (
    <>
      {searching && <SearchDialog />}
      {presented !== null && <Presenter at={presented} />}
    </>
  );
}
