/** A small matrix as numbers in brackets, with its token texts outside; every number is a button. */
import type { ComponentChildren } from "preact";
import { select } from "../state/actions.ts";
import { useMarks } from "../state/marks.ts";
import { countedFrom, useSession, useSpeech, useStore } from "../state/session.ts";
import type { Plane } from "../state/slices.ts";
import { full, short } from "../state/text.ts";
import { Letters } from "./letters.tsx";
import { TokenText } from "./token.tsx";

export interface TableProps {
  keyName: string;
  /** A second tensor shown under each number: the value after the update. */
  secondKey?: string | undefined;
  plane: Plane;
  rowTexts: string[];
  columnTexts: string[];
  caption: string;
  /** Number -> text shown in place of it (token texts, yes and no). */
  write?: ((x: number, flat: number) => string) | undefined;
}

const ARROWS: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** Arrow keys walk from number to number; the browser's focus goes with them. */
function walk(event: KeyboardEvent, plane: Plane): void {
  const step = ARROWS[event.key];
  const here = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-flat]") : null;
  const table = event.currentTarget;
  if (!step || !here || !(table instanceof HTMLElement) || event.altKey || event.ctrlKey || event.metaKey) return;
  const place = plane.place(Number(here.dataset["flat"]));
  if (!place) return;
  const row = place.row + step[0];
  const column = place.column + step[1];
  if (row < 0 || column < 0 || row >= plane.rows || column >= plane.columns) return;
  event.preventDefault();
  const face = here.dataset["face"] ?? "0";
  table.querySelector<HTMLElement>(`[data-flat="${plane.flat(row, column)}"][data-face="${face}"]`)?.focus();
}

interface NumberProps {
  keyName: string;
  flat: number;
  text: string;
  title: string;
  label: string;
  first: boolean;
  face: 0 | 1;
}

/** One number: marked when looked at, read by the looked-at one, reading it, or changed by the reader. */
function NumberButton({ keyName, flat, text, title, label, first, face }: NumberProps) {
  const session = useSession();
  const chosen = useStore((state) => state.selected?.key === keyName && state.selected.flat === flat);
  const pointed = useStore((state) => state.pointed?.key === keyName && state.pointed.flat === flat);
  const mark = useMarks(keyName)?.get(flat);
  const edited = face === 0 && session.engine.isEdited(keyName, flat);
  const names = ["number", mark ?? "", chosen ? "chosen" : "", pointed ? "pointed" : "", edited ? "edited" : ""];
  return (
    <button
      type="button"
      class={names.filter(Boolean).join(" ")}
      data-flat={flat}
      data-face={face}
      data-cell={`${keyName}:${flat}`}
      tabIndex={chosen || first ? 0 : -1}
      aria-pressed={chosen}
      aria-label={label}
      title={title}
      onClick={() => select(session, { key: keyName, flat })}
    >
      <TokenText text={text} />
    </button>
  );
}

/** Where a cell of a grid lies, for what is put into it. */
export interface Place {
  row: number;
  column: number;
  /** Row and column in words; empty where they have no texts. */
  words: string;
}

interface GridProps extends Pick<TableProps, "plane" | "rowTexts" | "columnTexts" | "caption"> {
  cell: (flat: number, place: Place) => ComponentChildren;
}

/** A matrix between brackets: texts along its sides, in each place what `cell` puts there. */
export function NumberGrid({ plane, rowTexts, columnTexts, caption, cell }: GridProps) {
  const { t } = useSpeech();
  const where = (row: number, column: number): string =>
    [rowTexts[row] && `${t("row")} ${rowTexts[row]}`, columnTexts[column] && `${t("column")} ${columnTexts[column]}`]
      .filter(Boolean)
      .join(", ");
  return (
    <div class="matrix-scroll">
      <table class="matrix" onKeyDown={(event) => walk(event, plane)}>
        <caption class="sr">{caption}</caption>
        {columnTexts.length > 0 && (
          <thead>
            <tr>
              {rowTexts.length > 0 && (
                <td class="corner">
                  <Letters plane={plane} />
                </td>
              )}
              {columnTexts.map((text) => (
                <th scope="col" class="axis-text" title={text}>
                  <span>
                    <TokenText text={text} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {Array.from({ length: plane.rows }, (_, row) => (
            <tr>
              {rowTexts.length > 0 && (
                <th scope="row" class="axis-text" title={rowTexts[row]}>
                  <span>
                    <TokenText text={rowTexts[row]} />
                  </span>
                </th>
              )}
              {Array.from({ length: plane.columns }, (_, column) => {
                const sides = `${row === 0 ? " top" : ""}${row === plane.rows - 1 ? " bottom" : ""}`;
                const ends = `${column === 0 ? " left" : ""}${column === plane.columns - 1 ? " right" : ""}`;
                return (
                  <td class={`cell${sides}${ends}`}>
                    {cell(plane.flat(row, column), { row, column, words: where(row, column) })}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function NumberTable({ keyName, secondKey, plane, rowTexts, columnTexts, caption, write }: TableProps) {
  const session = useSession();
  const { engine } = session;
  const { t } = useSpeech();
  useStore((state) => state.version);
  const from = countedFrom(session, keyName);
  const wanted = useStore((state) => state.digits);
  const digits = plane.columns > 4 && wanted > 3 && wanted < 10 ? 3 : wanted;
  const values = engine.value(keyName);
  const second = secondKey === undefined ? undefined : engine.value(secondKey);
  const words = write ?? ((x: number) => short(x + from, digits));
  return (
    <NumberGrid
      {...{ plane, rowTexts, columnTexts, caption }}
      cell={(flat, place) => (
        <>
          <NumberButton
            keyName={keyName}
            flat={flat}
            text={words(values[flat], flat)}
            title={full(values[flat] + from)}
            label={`${words(values[flat], flat)}, ${place.words || caption}`}
            first={place.row === 0 && place.column === 0}
            face={0}
          />
          {second !== undefined && secondKey !== undefined && (
            <NumberButton
              keyName={secondKey}
              flat={flat}
              text={words(second[flat], flat)}
              title={full(second[flat])}
              label={`${t("after")}: ${words(second[flat], flat)}, ${place.words}`}
              first={false}
              face={1}
            />
          )}
        </>
      )}
    />
  );
}
