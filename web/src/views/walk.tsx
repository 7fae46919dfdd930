/** Following one number: numbered steps, each of which looks at the right cell. */
import { useEffect } from "preact/hooks";
import { select } from "../state/actions.ts";
import { lookUp } from "../state/lookup.ts";
import { splitKey } from "../state/keys.ts";
import { tokenText } from "../state/leaves.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { short } from "../state/text.ts";
import { walksFor, type Walk, type WalkStep } from "../walks.ts";
import { Prose } from "./prose.tsx";
import { Status } from "./status.tsx";

export function startWalk(session: Session, walk: Walk): void {
  session.store.set({ walk: { id: walk.id, step: 0 } });
}

/** Begins a walk by name, where the trace has one. */
export function WalkStarts() {
  const session = useSession();
  const { t, pick } = useSpeech();
  const walks = walksFor(session.header);
  if (walks.length === 0) return null;
  return (
    <div class="walk-starts">
      <p>{t("walkInvite")}</p>
      {walks.map((walk) => (
        <button
          key={walk.id}
          type="button"
          class="primary"
          data-walk={walk.id}
          onClick={() => startWalk(session, walk)}
        >
          <span>
            <Prose text={pick(walk.title)} />
          </span>
        </button>
      ))}
    </div>
  );
}

/** The cell of a step; the target's column is the target's as it now is. */
function cellOf(session: Session, step: WalkStep): Cell | null {
  const target = session.engine.targets().at(-1) ?? 0;
  const found = lookUp(session, step.cell.replace("$target", String(target)));
  return "key" in found ? found : null;
}

export function WalkPanel() {
  const session = useSession();
  const { t, pick } = useSpeech();
  const at = useStore((state) => state.walk);
  const labels = useStore((state) => state.labels);
  useStore((state) => state.version);
  const walk = walksFor(session.header).find((each) => each.id === at?.id);
  const step = at ? walk?.steps[at.step] : undefined;
  useEffect(() => {
    const cell = step ? cellOf(session, step) : null;
    if (cell) select(session, cell);
  }, [step]);
  if (!at || !walk || !step) return null;
  const cell = cellOf(session, step);
  const x = cell ? session.engine.value(cell.key)[cell.flat] : NaN;
  const target = session.engine.targets().at(-1) ?? null;
  const words: Record<string, string> = {
    value: cell && splitKey(cell.key).id === "embed.t" ? tokenText(session, x, labels) : short(x, 6),
    target: target === null ? "—" : tokenText(session, target, labels),
    first: tokenText(session, session.engine.tokens()[0], labels),
    second: tokenText(session, session.engine.tokens()[1], labels),
    eta: short(session.engine.scalar("eta"), 6),
  };
  const go = (by: number): void => session.store.set({ walk: { id: walk.id, step: at.step + by } });
  return (
    <section class="walk" aria-label={t("walkName")}>
      <header>
        <b>
          <Prose text={pick(walk.title)} />
        </b>
        <span class="digits" data-role="walk-step">
          {at.step + 1} / {walk.steps.length}
        </span>
        <button type="button" class="plain" onClick={() => session.store.set({ walk: null })}>
          {t("endWalk")}
        </button>
      </header>
      <p aria-live="polite">
        <Status status="example" /> <Prose text={pick(step.text)} words={words} />
      </p>
      <footer>
        <button type="button" disabled={at.step === 0} onClick={() => go(-1)}>
          {t("previous")}
        </button>
        <button type="button" class="primary" disabled={at.step === walk.steps.length - 1} onClick={() => go(1)}>
          {t("next")}
        </button>
      </footer>
    </section>
  );
}
