/** What the probes found in the recorded run: figures, tables and notes, as data. */
import { useState } from "preact/hooks";
import type { Report, ReportCell, ReportTable } from "../data/types.ts";
import { TEXTS, type Text } from "../i18n.ts";
import { probeCommand, traceCommand } from "../state/command.ts";
import { numberIn } from "../state/report.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { picture, short } from "../state/text.ts";
import { Bar, largestOf } from "./bar.tsx";
import { SaturationFigure } from "./curves.tsx";
import { EffectFigure } from "./effect.tsx";
import { Status } from "./status.tsx";
import { TokenText } from "./token.tsx";

/** Columns drawn as bars, on one scale, by kind of report and number of the table. */
const BARS: Readonly<Record<string, readonly (readonly number[])[]>> = {
  attention: [[3, 5], [], [], [2], [1]],
  gradients: [[1, 2, 3], [1]],
  variance: [[3, 4, 6]],
};

const FEW = 12;

function Value({ cell, counted }: { cell: ReportCell; counted: boolean }) {
  const { t, pick } = useSpeech();
  if (cell === null) return <>–</>;
  if (typeof cell === "boolean") return <>{t(cell ? "yes" : "no")}</>;
  // A reader's layers, heads and positions count from 1.
  if (typeof cell === "number") return <>{counted ? cell + 1 : short(cell, 4)}</>;
  return <TokenText text={picture(typeof cell === "string" ? cell : pick(cell))} />;
}

function Rows({ name, table, bars }: { name: string; table: ReportTable; bars: readonly number[] }) {
  const { t, pick } = useSpeech();
  const printing = useStore((state) => state.printing);
  const [all, setAll] = useState(false);
  const { rows, columns, counted } = table;
  const shown = all || printing || rows.length <= FEW + 2 ? rows : rows.slice(0, FEW);
  const barred = rows.flatMap((row) => bars.map((column) => numberIn(row[column])));
  const [size, signed] = [largestOf(barred), barred.some((x) => x !== null && x < 0)];
  return (
    <div class="report-part">
      <h4 id={name}>{pick(table.title)}</h4>
      <div class="report-scroll">
        <table class="figures report-table" aria-labelledby={name}>
          <thead>
            <tr>
              {columns.map((column, at) => (
                <th key={at} scope="col" class={bars.includes(at) ? "over-bar" : ""}>
                  {pick(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, at) => (
              <tr key={at}>
                {row.map((cell, column) => {
                  const text = typeof cell === "string" || (typeof cell === "object" && cell !== null);
                  const look = text ? "words" : bars.includes(column) ? "digits bar-cell" : "digits";
                  return (
                    <td key={column} class={look}>
                      {bars.includes(column) && <Bar value={numberIn(cell)} size={size} signed={signed} />}
                      <span>
                        <Value cell={cell} counted={counted.includes(column)} />
                      </span>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < rows.length && (
        <button type="button" class="plain small" onClick={() => setAll(true)}>
          {t("moreRows", { count: rows.length })}
        </button>
      )}
    </div>
  );
}

const COUNTED_FACTS = new Set(["row", "layer"]);

/** Of what the probe was asked, in words; a name that the page does not know stands for itself. */
function Asked({ report }: { report: Report }) {
  const { t } = useSpeech();
  const facts = Object.entries(report.asked).filter(([name]) => name !== "target" || !("target_token" in report.asked));
  if (facts.length === 0) return null;
  const told = facts.map(([name, value]) => {
    const known = `asked_${name}`;
    const text = typeof value === "string" ? `“${picture(value)}”` : JSON.stringify(value);
    const plain = typeof value === "number" ? short(COUNTED_FACTS.has(name) ? value + 1 : value, 4) : text;
    return Object.hasOwn(TEXTS, known) ? t(known as Text, { value: plain }) : `${name}: ${plain}`;
  });
  return (
    <p class="quiet small asked">
      <TokenText text={told.join("; ")} />
    </p>
  );
}

/** What a command adds so that it asks of the same row and layer; a reader changes the numbers. */
function sameAgain({ kind, asked }: Report): string[] {
  const number = (name: string): string[] => {
    const value = asked[name];
    return typeof value === "number" ? [`--${name}`, String(value)] : [];
  };
  return ["--kind", kind, ...number("row"), ...number("layer")];
}

function More({ report }: { report: Report }) {
  const { header } = useSession();
  const { t } = useSpeech();
  const command = "row" in report.asked ? probeCommand(header, sameAgain(report)) : null;
  if (command === null) return null;
  return (
    <p class="quiet small more">
      {t("probesMore")} <code>{command}</code>
    </p>
  );
}

function ReportSection({ report }: { report: Report }) {
  const { t, pick } = useSpeech();
  const bars = BARS[report.kind] ?? [];
  const tables = report.tables.map((table, at) => (
    <Rows key={at} name={`probe-${report.kind}-${at}`} table={table} bars={bars[at] ?? []} />
  ));
  // What the figure shows already stays at hand as a table.
  const [folded, open] =
    report.kind === "attention"
      ? [tables.slice(1, 3), [tables[0], ...tables.slice(3)]]
      : report.kind === "saturation"
        ? [tables, []]
        : [[], tables];
  return (
    <article class="report" id={`probe-${report.kind}`}>
      <h3>
        {pick(report.title)} <Status status={report.provenance} />
      </h3>
      <Asked report={report} />
      {report.kind === "attention" && <EffectFigure report={report} />}
      {report.kind === "saturation" && <SaturationFigure report={report} />}
      {folded.length > 0 && (
        <details>
          <summary>{t("allCells")}</summary>
          {folded}
        </details>
      )}
      <div class="report-tables">{open}</div>
      {report.notes.map((note, at) => (
        <p key={at} class="note">
          <Status status={note.status} /> {pick(note.text)}
        </p>
      ))}
      <More report={report} />
    </article>
  );
}

export function Probes() {
  const { header } = useSession();
  const { t } = useSpeech();
  const edited = useStore((state) => state.edited);
  const { probes } = header;
  return (
    <section class="probes" aria-label={t("probes")}>
      <h2>{t("probes")}</h2>
      <p class="note">{t("probesMean")}</p>
      {probes === undefined ? (
        <div class="missing">
          <p>
            <b>{t("notRecorded")}</b>. {t("probesNone")}
          </p>
          <p>
            {t("probesBring")} <code>{traceCommand(header, ["--probes", "--html", "PAGE.html"])}</code>
          </p>
        </div>
      ) : (
        <>
          {edited && (
            <p role="status" class="edited-note">
              {t("probesOfRecorded")}
            </p>
          )}
          {probes.map((report, at) => (
            <ReportSection key={at} report={report} />
          ))}
        </>
      )}
    </section>
  );
}
