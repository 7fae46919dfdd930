/** What derivations and lemmas share: a step's reason, and the buttons that show more steps. */
import type { ComponentChildren } from "preact";
import type { DerivationStep } from "../data/types.ts";
import { useSpeech } from "../state/session.ts";

interface ReasonProps {
  step: Pick<DerivationStep, "reason" | "condition">;
  number: number;
  /** The reason as it is drawn, where that is more than its text. */
  drawn?: ComponentChildren;
  children?: ComponentChildren;
}

export function Reason({ step, number, drawn, children }: ReasonProps) {
  const { t, pick } = useSpeech();
  return (
    <p class="reason">
      <span class="step-number digits">{number}</span>
      {step.condition && (
        <span class="status status-condition" title={t("conditionMeans")}>
          {t("conditionTag")}
        </span>
      )}{" "}
      {drawn ?? pick(step.reason)} {children}
    </p>
  );
}

export function StepButtons({ shown, count, show }: { shown: number; count: number; show: (count: number) => void }) {
  const { t } = useSpeech();
  if (shown >= count) return null;
  return (
    <p class="derivation-tools">
      <button type="button" class="primary" onClick={() => show(shown + 1)}>
        {t("nextStep")}
      </button>
      <button type="button" onClick={() => show(count)}>
        {t("allSteps")}
      </button>
      <span class="quiet small digits">
        {shown} / {count}
      </span>
    </p>
  );
}
