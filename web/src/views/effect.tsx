/** Attention beside the measured effect of taking it out, position by position, as bars. */
import { useState } from "preact/hooks";
import type { Report } from "../data/types.ts";
import { select } from "../state/actions.ts";
import { flatOf } from "../state/keys.ts";
import { countOf, rowsOf, type Numbers } from "../state/report.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { picture, short } from "../state/text.ts";
import { Bar, largestOf } from "./bar.tsx";
import { TokenText } from "./token.tsx";

interface Effect {
  layer: number;
  row: number;
  /** Of each head, by position. */
  A: Numbers[];
  norm: Numbers[];
  guess: Numbers[];
  measured: Numbers[];
  predicted: Numbers[];
  /** Of each head: how well A, norm and guess agree with the size of what was measured. */
  agreement: Numbers[];
}

/** One column for a head; its scale is that of all heads. */
interface Bars {
  name: string;
  kind: string;
  values: Numbers;
  size: number;
  signed: boolean;
  mark?: Numbers;
  agrees: number | null;
}

/** The coefficient beside what its removal does, then the two guesses. */
function barsOf({ A, norm, guess, measured, predicted, agreement }: Effect, head: number, lossName: string): Bars[] {
  const column = (name: string, kind: string, of: Numbers[], agrees: number | null, signed = false): Bars => {
    return { name, kind, values: of[head], size: largestOf(of.flat()), signed, agrees };
  };
  const [a, n, g] = agreement[head];
  return [
    column("A", "coefficient", A, a ?? null),
    {
      ...column(lossName, "effect", [...measured, ...predicted], null, true),
      values: measured[head],
      mark: predicted[head],
    },
    column("‖A v W_O‖", "intermediate", norm, n ?? null),
    column("A · ∂L/∂A", "gradient", guess, g ?? null, true),
  ];
}

function effectOf({ values, asked }: Report): Effect | null {
  const read = (name: string): Numbers[] => rowsOf(values, name) ?? [];
  const [layer, row] = [countOf(asked, "layer"), countOf(asked, "row")];
  const [A, norm, guess] = [read("A"), read("norm"), read("gradient_times_value")];
  const [measured, predicted, agreement] = [read("cells_loss"), read("first_order"), read("agreement")];
  const shaped = [A, norm, guess, measured, predicted].every(
    (each) => each.length === A.length && each.every((numbers) => numbers.length === A[0].length),
  );
  if (layer === null || row === null || A.length === 0 || !shaped || agreement.length !== A.length) return null;
  return { layer, row, A, norm, guess, measured, predicted, agreement };
}

const FEW = 16;

/** The positions shown: all of a short text, else those where something is large, in their order. */
function chosen({ A, measured }: Effect, head: number, all: boolean): number[] {
  const positions = A[head].map((_, j) => j);
  if (all || positions.length <= FEW + 2) return positions;
  const size = (numbers: Numbers, j: number): number => Math.abs(numbers[j] ?? 0);
  const [a, loss] = [largestOf(A[head]) || 1, largestOf(measured[head]) || 1];
  const weight = (j: number): number => Math.max(size(A[head], j) / a, size(measured[head], j) / loss);
  const largest = positions.sort((i, j) => weight(j) - weight(i)).slice(0, FEW);
  return largest.sort((i, j) => i - j);
}

function cellOf({ engine }: Session, { layer, row }: Effect, head: number, j: number): Cell | null {
  const key = `blocks.${layer}.attn.A`;
  if (!engine.has(key)) return null;
  const [index, shape] = [[head, row, j], engine.shape(key)];
  return index.every((at, axis) => at < shape[axis]) ? { key, flat: flatOf(index, shape) } : null;
}

interface LineProps {
  effect: Effect;
  bars: Bars[];
  head: number;
  j: number;
  text: string;
}

function Line({ effect, bars, head, j, text }: LineProps) {
  const session = useSession();
  const { t } = useSpeech();
  const cell = cellOf(session, effect, head, j);
  return (
    <tr>
      <th scope="row">
        <span class="quiet digits">{j + 1}</span>{" "}
        <span class="report-token">
          <TokenText text={picture(text)} />
        </span>
      </th>
      {bars.map(({ name, kind, values, size, signed, mark }) => {
        const x = values[j];
        return (
          <td key={name} class={`bar-cell k-${kind}`}>
            <Bar value={x} size={size} signed={signed} mark={mark?.[j] ?? null} />
            {name === "A" && cell !== null ? (
              <button type="button" class="plain digits" onClick={() => select(session, cell, true)}>
                {x === null ? "–" : short(x, 3)}
              </button>
            ) : (
              <span class="digits" title={x === null ? t("nothingLeft") : undefined}>
                {x === null ? "–" : short(x, 3)}
              </span>
            )}
          </td>
        );
      })}
    </tr>
  );
}

/** The figure of an attention report; nothing where its numbers are not there. */
export function EffectFigure({ report }: { report: Report }) {
  const session = useSession();
  const { t } = useSpeech();
  const printing = useStore((state) => state.printing);
  const [head, setHead] = useState(0);
  const [all, setAll] = useState(false);
  const effect = effectOf(report);
  if (!effect) return null;
  const count = effect.measured[0].length;
  const bars = barsOf(effect, head, t("effectLoss"));
  const shown = chosen(effect, head, all || printing);
  const tokens = session.trace.tensor("embed.t");
  const text = (j: number): string => (tokens ? (session.header.vocabulary[tokens[j]] ?? `#${tokens[j]}`) : "");
  return (
    <figure class="effect">
      {effect.measured.length > 1 && (
        <div class="heads" role="group" aria-label={t("head")}>
          <span>{t("head")}</span>
          {effect.measured.map((_, at) => (
            <button key={at} type="button" aria-pressed={at === head} onClick={() => setHead(at)}>
              {at + 1}
            </button>
          ))}
        </div>
      )}
      <div class="report-scroll">
        <table class="figures report-table">
          <thead>
            <tr>
              <th scope="col">{t("effectReads")}</th>
              {bars.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((j) => (
              <Line key={j} effect={effect} bars={bars} head={head} j={j} text={text(j)} />
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">{t("effectAgree")}</th>
              {bars.map(({ name, agrees }) => (
                <td key={name} class="digits">
                  {agrees === null ? "" : short(agrees, 3)}
                </td>
              ))}
            </tr>
          </tfoot>
        </table>
      </div>
      {shown.length < count && (
        <p class="quiet small">
          {t("somePositions", { count: shown.length })}{" "}
          <button type="button" class="plain" onClick={() => setAll(true)}>
            {t("allPositions", { count })}
          </button>
        </p>
      )}
      <figcaption class="quiet small">{t("effectMeans")}</figcaption>
    </figure>
  );
}
