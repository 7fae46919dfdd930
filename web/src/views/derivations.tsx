/** Derivations that unfold step by step, each step with its reason and, on demand, this run's number. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Derivation, DerivationStep } from "../data/types.ts";
import { flatOf, indexOf, keyOf } from "../state/keys.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import { tensorTex } from "../state/symbols.ts";
import { full, rough } from "../state/text.ts";
import { Formula, LazyTex } from "./formula.tsx";
import { Status } from "./status.tsx";
import { Reason, StepButtons } from "./unfolding.tsx";

/** Values of the last step, to which every step must be equal; empty where the run lacks an operand. */
function goalOf({ engine }: Session, derivation: Derivation): Float64Array {
  const last = derivation.steps.at(-1);
  return last ? engine.evaluate(last.expr, derivation.letters) : new Float64Array(0);
}

/** The cell whose numbers are shown: the looked-at one where it is of the derivation's target, else the largest. */
function useChosen(derivation: Derivation, goal: Float64Array): [number, (flat: number) => void] {
  const key = derivation.face === "partial" ? "" : keyOf(derivation.target, derivation.face);
  const looked = useStore((state) => (state.selected?.key === key ? state.selected.flat : -1));
  const [own, setOwn] = useState<number | null>(null);
  const largest = goal.reduce((best, x, flat) => (Math.abs(x) > Math.abs(goal[best]) ? flat : best), 0);
  return [own ?? (looked >= 0 ? looked : largest), setOwn];
}

/** A choice for each letter of the target, counted from 1. */
function CellChoice({
  derivation,
  flat,
  choose,
}: {
  derivation: Derivation;
  flat: number;
  choose: (flat: number) => void;
}) {
  const { engine } = useSession();
  const shape = derivation.letters.map(([, dimension]) => engine.scalar(dimension));
  const index = indexOf(flat, shape);
  return (
    <span class="cell-choice">
      {derivation.letters.map(([letter], axis) =>
        shape[axis] === 1 ? null : (
          <label key={letter}>
            <i>{letter}</i>
            <select
              value={String(index[axis])}
              onChange={(event) => choose(flatOf(index.with(axis, Number(event.currentTarget.value)), shape))}
            >
              {Array.from({ length: shape[axis] }, (_, at) => (
                <option key={at} value={String(at)}>
                  {at + 1}
                </option>
              ))}
            </select>
          </label>
        ),
      )}
    </span>
  );
}

interface StepProps {
  derivation: Derivation;
  step: DerivationStep;
  number: number;
  flat: number;
  /** What every step must give at this cell; null when no numbers are asked for. */
  wanted: number | null;
}

function Step({ derivation, step, number, flat, wanted }: StepProps) {
  const { engine } = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const value = wanted === null ? NaN : engine.evaluate(step.expr, derivation.letters)[flat];
  return (
    <Line step={step} number={number}>
      {wanted !== null && (
        <p class="step-value">
          {t("thisRun")} <b class="digits">{full(value)}</b>
          <span class="quiet digits">
            {" "}
            {t("differenceIs", { difference: rough(value === wanted ? 0 : Math.abs(value - wanted)) })}
          </span>
        </p>
      )}
    </Line>
  );
}

interface LineProps {
  step: Pick<DerivationStep, "latex" | "reason" | "condition">;
  number: number;
  /** The reason as it is drawn, where that is more than its text. */
  reason?: ComponentChildren;
  children?: ComponentChildren;
}

/** One line of a derivation: its reason, its formula, and what is told of it. */
export function Line({ step, number, reason, children }: LineProps) {
  return (
    <li class="step">
      <Reason step={step} number={number} drawn={reason} />
      <Formula tex={step.latex} />
      {children}
    </li>
  );
}

function headTex(session: Session, { target, face }: Derivation): string {
  return tensorTex(session, target, face === "partial" ? "" : face);
}

function Unfolding({ derivation }: { derivation: Derivation }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const shown = useStore((state) => (state.printing ? derivation.steps.length : (state.unfolded[derivation.id] ?? 0)));
  const [numbers, setNumbers] = useState(false);
  const version = useStore((state) => state.version);
  const goal = useMemo(() => (numbers ? goalOf(session, derivation) : new Float64Array(0)), [numbers, version]);
  const [flat, choose] = useChosen(derivation, goal);
  const ready = session.engine.ready(derivation.steps.map(({ expr }) => expr));
  const show = (count: number): void => {
    session.store.set({ unfolded: { ...session.store.get().unfolded, [derivation.id]: count } });
  };
  return (
    <article class={shown > 0 ? "derivation open" : "derivation"} id={`derivation-${derivation.id}`}>
      <h3>
        <button type="button" aria-expanded={shown > 0} onClick={() => show(shown > 0 ? 0 : 1)}>
          <span class="twist" aria-hidden="true" />
          <LazyTex tex={headTex(session, derivation)} plain="" /> {pick(derivation.title)}
        </button>
        <Status status={derivation.status} />
        {derivation.source && <span class="quiet small">{t("section", { number: derivation.source })}</span>}
      </h3>
      {shown > 0 && (
        <>
          <p class="derivation-tools">
            <label class="check">
              <input
                type="checkbox"
                checked={numbers}
                disabled={!ready}
                title={ready ? "" : t("notRecorded")}
                onChange={() => setNumbers(!numbers)}
              /> {t("withNumbers")}
            </label>
            {numbers && <CellChoice derivation={derivation} flat={flat} choose={choose} />}
          </p>
          <ol class="steps">
            {derivation.steps.slice(0, shown).map((step, at) => (
              <Step
                key={at}
                derivation={derivation}
                step={step}
                number={at + 1}
                flat={flat}
                wanted={numbers ? goal[flat] : null}
              />
            ))}
          </ol>
          <StepButtons shown={shown} count={derivation.steps.length} show={show} />
        </>
      )}
    </article>
  );
}

export function Derivations() {
  const { header } = useSession();
  const { t } = useSpeech();
  if (header.derivations.length === 0) return null;
  return (
    <section class="derivations" id="derivations" aria-label={t("derivations")}>
      <h2>{t("derivations")}</h2>
      <p class="note">{t("derivationsMean")}</p>
      {header.derivations.map((derivation) => (
        <Unfolding key={derivation.id} derivation={derivation} />
      ))}
    </section>
  );
}
