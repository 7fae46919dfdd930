/** What kind of statement, or number, a reader has before them. */
import type { Provenance, StatementStatus } from "../data/types.ts";
import { useSpeech } from "../state/session.ts";

export type NumberStatus = Provenance | "recorded";

/** A small mark with its meaning in its title. */
export function Status({ status }: { status: StatementStatus | NumberStatus }) {
  const { t } = useSpeech();
  return (
    <span class={`status status-${status}`} title={t(`${status}Means`)}>
      {t(status)}
    </span>
  );
}
