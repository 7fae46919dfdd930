/** Lemmas: statements that are no gradient, line by line, with what each line assumes. */
import type { Lemma, LemmaStep } from "../data/types.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { Formula } from "./formula.tsx";
import { Status } from "./status.tsx";
import { Reason, StepButtons } from "./unfolding.tsx";

function Step({ lemma, step, number }: { lemma: Lemma; step: LemmaStep; number: number }) {
  const { t } = useSpeech();
  const names = Object.keys(lemma.premises);
  const used = step.premises.map((name) => names.indexOf(name) + 1).filter((at) => at > 0);
  return (
    <li class="step">
      <Reason step={step} number={number}>
        {used.length > 0 && (
          <span class="premise-refs">
            {t("premiseRefs", { numbers: used.map((at) => `(${at})`).join(", ") })}
          </span>
        )}
      </Reason>
      <Formula tex={step.latex} />
    </li>
  );
}

function Unfolding({ lemma }: { lemma: Lemma }) {
  const { t, pick } = useSpeech();
  const { store } = useSession();
  const name = `lemma ${lemma.id}`;
  const shown = useStore((state) => (state.printing ? lemma.steps.length : (state.unfolded[name] ?? 0)));
  const show = (count: number): void => store.set({ unfolded: { ...store.get().unfolded, [name]: count } });
  const premises = Object.entries(lemma.premises);
  return (
    <article class={shown > 0 ? "derivation open" : "derivation"} id={`lemma-${lemma.id}`}>
      <h3>
        <button type="button" aria-expanded={shown > 0} onClick={() => show(shown > 0 ? 0 : 1)}>
          <span class="twist" aria-hidden="true" />
          {pick(lemma.title)}
        </button>
        <Status status={lemma.status} />
        {lemma.source && <span class="quiet small">{t("section", { number: lemma.source })}</span>}
      </h3>
      {shown > 0 && (
        <>
          {premises.length === 0 ? (
            <p class="quiet small premises">{t("noPremises")}</p>
          ) : (
            <div class="premises">
              <b class="small">{t("premises")}</b>
              <ol>
                {premises.map(([key, text]) => (
                  <li key={key}>{pick(text)}</li>
                ))}
              </ol>
            </div>
          )}
          <ol class="steps">
            {lemma.steps.slice(0, shown).map((step, at) => (
              <Step key={at} lemma={lemma} step={step} number={at + 1} />
            ))}
          </ol>
          <StepButtons shown={shown} count={lemma.steps.length} show={show} />
        </>
      )}
    </article>
  );
}

export function Lemmas() {
  const { header } = useSession();
  const { t } = useSpeech();
  if (!header.lemmas?.length) return null;
  return (
    <section class="derivations lemmas" id="lemmas" aria-label={t("lemmas")}>
      <h2>{t("lemmas")}</h2>
      <p class="note">{t("lemmasMean")}</p>
      {header.lemmas.map((lemma) => (
        <Unfolding key={lemma.id} lemma={lemma} />
      ))}
    </section>
  );
}
