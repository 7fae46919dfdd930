/** What stands beside a number: the value the run recorded, and for gradients three independent witnesses. */
import { splitKey } from "../state/keys.ts";
import type { CellExplanation } from "../notation/explanation.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { full, rough } from "../state/text.ts";

/** u = 2⁻⁵³: below u times the magnitude of its own formula a number is zero up to rounding. */
const UNIT = 2 ** -53;

interface Row {
  name: string;
  value: number | undefined;
  difference: number | undefined;
  title?: string;
}

function distance(a: number | undefined, b: number): number | undefined {
  if (a === undefined || Number.isNaN(b)) return undefined;
  return a === b ? 0 : Math.abs(a - b);
}

/** Whether rounding alone explains the number. */
export function useIsZero(cell: Cell): boolean {
  const { engine, header } = useSession();
  useStore((state) => state.version);
  const x = engine.value(cell.key)[cell.flat];
  // The magnitude of a whole tensor of a large model takes too long for one number.
  if (x === 0 || engine.pace === "recorded" || !Number.isFinite(x)) return false;
  const { id, face } = splitKey(cell.key);
  if (face === "grad" && header.witnesses[id]?.zero_in_theory) return true;
  if (face !== "grad" || Math.abs(x) > 1e-9) return false;
  return Math.abs(x) < UNIT * engine.magnitude(cell.key)[cell.flat];
}

function Rows({ rows }: { rows: Row[] }) {
  const { t } = useSpeech();
  return (
    <table class="witnesses">
      <thead>
        <tr>
          <th scope="col">{t("source")}</th>
          <th scope="col">{t("value")}</th>
          <th scope="col">{t("difference")}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row" title={row.title}>
              {row.name}
            </th>
            <td class="digits">{row.value === undefined ? t("notRecorded") : full(row.value)}</td>
            <td class="digits">{row.difference === undefined ? "" : rough(row.difference)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Of a gradient: definition, automatic differentiation, central difference. */
function GradientWitnesses({ cell, defined: x }: { cell: Cell; defined: number }) {
  const { header, trace } = useSession();
  const { t } = useSpeech();
  const { id } = splitKey(cell.key);
  const witness = header.witnesses[id];
  const autograd = trace.tensor(cell.key)?.[cell.flat];
  const central = witness?.central?.cells.find(([flat]) => flat === cell.flat)?.[1];
  const rows: Row[] = [
    { name: t("byDefinition"), value: x, difference: undefined },
    { name: t("byAutograd"), value: autograd, difference: distance(autograd, x) },
  ];
  if (central !== undefined) {
    const step = witness?.central?.step ?? 0;
    rows.push({
      name: t("byDifference", { step: rough(step) }),
      value: central,
      difference: distance(central, x),
      title: t("centralMeans"),
    });
  }
  const directional = witness?.directional;
  return (
    <>
      <Rows rows={rows} />
      {witness && central === undefined && <p class="quiet small">{t("notSampled")}</p>}
      {witness && (
        <p class="quiet small">
          {witness.err_autograd !== null && t("tensorAutograd", { error: rough(witness.err_autograd) })}{" "}
          {witness.central &&
            t("tensorCentral", {
              cells: witness.central.cells.length,
              error: rough(witness.central.max_abs_diff),
            })}{" "}
          {directional && t("tensorDirectional", { error: rough(directional.difference) })}
        </p>
      )}
    </>
  );
}

interface WitnessesProps {
  cell: Cell;
  /** Null where something that the definition reads is not in the page. */
  explanation: CellExplanation | null;
}

export function Witnesses({ cell, explanation }: WitnessesProps) {
  const { engine, trace } = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const { id, face } = splitKey(cell.key);
  const edited = useStore((state) => state.edited);
  const zero = useIsZero(cell);
  // Where nothing was computed yet the tensor is the recorded one, and the cell alone is computed for comparison.
  const fresh = engine.version > 0 ? engine.value(cell.key)[cell.flat] : explanation?.value;
  const x = fresh ?? NaN;
  const recorded = trace.tensor(cell.key)?.[cell.flat];
  const before = edited ? t("beforeEdit") : "";
  return (
    <section class="witness" aria-label={t("check")}>
      <h3>{face === "grad" ? t("threeWitnesses") : t("check")}</h3>
      {edited && <p class="warning small">{t("recordedIsBefore")}</p>}
      {face === "grad" && id !== "loss.L" ? (
        <GradientWitnesses cell={cell} defined={x} />
      ) : (
        <Rows
          rows={[
            { name: t("byDefinition"), value: fresh, difference: undefined },
            { name: `${t("recorded")} ${before}`, value: recorded, difference: distance(recorded, x) },
          ]}
        />
      )}
      {zero && <p class="zero">{t("zeroUpToRounding")}</p>}
    </section>
  );
}
