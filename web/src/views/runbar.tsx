/** The run in one line: tokens in, target, learning rate, and the loss before and after the update. */
import { useState } from "preact/hooks";
import { editCell, editScalar, resetEdits } from "../state/actions.ts";
import { tokenText } from "../state/leaves.ts";
import { useOwnId, useSession, useSpeech, useStore } from "../state/session.ts";
import { picture, short } from "../state/text.ts";
import { CellLink } from "./arithmetic.tsx";
import { NumberField, TokenChoice } from "./editor.tsx";
import { TooLarge } from "./missing.tsx";
import { TokenText } from "./token.tsx";

/** Up to this many tokens each has its own choice in the line; longer texts open one at a time. */
const FEW = 6;

function FewTokens() {
  const session = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const tokens = session.engine.tokens();
  return (
    <span class="tokens">
      {tokens.map((token, row) => (
        <TokenChoice
          key={row}
          id={`token-${row}`}
          label={t("position", { at: row + 1 })}
          value={token}
          change={(chosen) => editCell(session, "embed.t", row, chosen)}
        />
      ))}
    </span>
  );
}

/** A longer text: each token a button, its shade the probability that the model gave to its target. */
function ManyTokens() {
  const session = useSession();
  const { t } = useSpeech();
  const labels = useStore((state) => state.labels);
  useStore((state) => state.version);
  const [chosen, setChosen] = useState<number | null>(null);
  const { engine } = session;
  const size = engine.scalar("N");
  const p = engine.holds("head.p") ? engine.value("head.p") : null;
  const targets = engine.targets();
  const tokens = engine.tokens();
  const fixed = engine.pace === "recorded";
  return (
    <div class="text-tokens">
      <div class="token-flow" role="group" aria-label={t("tokens")}>
        {tokens.map((token, row) => {
          const target = targets[row];
          const share = p && target !== null ? p[row * size + target] : null;
          const told =
            share === null
              ? ""
              : t("tokenTold", { target: tokenText(session, target ?? 0, labels), p: short(share, 4) });
          return (
            <button
              key={row}
              type="button"
              class={engine.isEdited("embed.t", row) ? "token edited" : "token"}
              aria-pressed={chosen === row}
              title={`${t("position", { at: row + 1 })}. ${told}`}
              style={{ "--share": share === null ? "0" : String(share) }}
              onClick={() => setChosen(chosen === row ? null : row)}
            >
              <TokenText text={tokenText(session, token, labels)} />
            </button>
          );
        })}
      </div>
      {chosen !== null && !fixed && (
        <TokenChoice
          id={`token-${chosen}`}
          label={t("position", { at: chosen + 1 })}
          value={tokens[chosen]}
          change={(token) => editCell(session, "embed.t", chosen, token)}
        />
      )}
      <p class="quiet small">{t(fixed ? "tokenShadeFixed" : "tokenShade")}</p>
    </div>
  );
}

function Targets() {
  const session = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const scored = session.engine.targets().flatMap((target, row) => (target === null ? [] : [{ target, row }]));
  if (scored.length > 2) return <p class="quiet small">{t("targetsMany", { count: scored.length })}</p>;
  return (
    <span class="tokens">
      {scored.map(({ target, row }) => (
        <TokenChoice
          key={row}
          id={`target-${row}`}
          label={t("targetOf", { at: row + 1 })}
          value={target}
          change={(token) => editCell(session, "loss.y", row, token)}
        />
      ))}
    </span>
  );
}

function LabelChoice() {
  const session = useSession();
  const { t, pick } = useSpeech();
  const labels = useStore((state) => state.labels);
  const id = useOwnId("labels");
  if (session.header.labels.length < 2) return null;
  return (
    <span class="token-choice">
      <label for={id}>{t("labels")}</label>
      <select id={id} value={labels} onChange={(event) => session.store.set({ labels: event.currentTarget.value })}>
        {session.header.labels.map((each) => (
          <option key={each.id} value={each.id}>
            {picture(pick(each))}
          </option>
        ))}
      </select>
    </span>
  );
}

/** The loss before and after the update. */
export function Losses() {
  const { engine } = useSession();
  const { t } = useSpeech();
  const busy = useStore((state) => state.busy);
  useStore((state) => state.version);
  return (
    <p class={busy ? "losses busy" : "losses"} aria-live="polite">
      <CellLink cell={{ key: "loss.L", flat: 0 }} />
      {engine.holds("loss.L.after") && (
        <>
          <span class="arrow" aria-label={t("becomes")}>
            →
          </span>
          <CellLink cell={{ key: "loss.L.after", flat: 0 }} />
        </>
      )}
      {busy && <span class="quiet"> {t("computing")}</span>}
    </p>
  );
}

export function RunBar() {
  const session = useSession();
  const { t } = useSpeech();
  const edited = useStore((state) => state.edited);
  const notice = useStore((state) => state.notice);
  useStore((state) => state.version);
  const { engine } = session;
  const fixed = engine.pace === "recorded";
  const few = engine.tokens().length <= FEW && !fixed;
  const hasUpdate = "eta" in session.header.scalars && !fixed;
  return (
    <section class="run-bar" aria-label={t("run")}>
      {few ? <FewTokens /> : <ManyTokens />}
      <div class="run-controls">
        {few && (
          <span class="arrow" aria-hidden="true">
            →
          </span>
        )}
        {!fixed && <Targets />}
        {hasUpdate && (
          <NumberField
            id="eta"
            label={t("learningRate")}
            value={engine.scalar("eta")}
            least={0}
            change={(x) => editScalar(session, "eta", x)}
          />
        )}
        <LabelChoice />
        {fixed && <TooLarge />}
        {edited && (
          <span class="edited-note">
            {t("editedRun")}
            <button type="button" onClick={() => resetEdits(session)}>
              {t("reset")}
            </button>
          </span>
        )}
        {notice && (
          <p role="alert" class="wrong-text">
            {t("refused", { reason: t(`refused_${notice}`) })}
          </p>
        )}
      </div>
    </section>
  );
}
