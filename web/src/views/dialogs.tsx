/** What opens over the page: the LaTeX of a formula, help for the keyboard, what is known about the run. */
import type { ComponentChildren } from "preact";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { remember } from "../state/settings.ts";
import { picture, rough } from "../state/text.ts";
import { LatexDialog, Modal } from "./latex.tsx";
import { Status } from "./status.tsx";

const PACES = { live: "paceLive", deferred: "paceDeferred", recorded: "paceRecorded" } as const;

/** Keys, and what each does (also read by the key handler's tests). */
const KEYS = [
  ["1 – 6", "keysViews"],
  ["← ↑ ↓ →", "keysArrows"],
  ["Enter", "keysEnter"],
  ["[  ]", "keysHistory"],
  ["e", "keysEdit"],
  ["/", "keysGoTo"],
  ["n  p", "keysWalk"],
  ["o  c", "keysParts"],
  ["l", "keysLanguage"],
  ["t", "keysTheme"],
  ["?", "keysHelp"],
] as const;

function Help() {
  const { store } = useSession();
  const { t } = useSpeech();
  const shortcuts = useStore((state) => state.shortcuts);
  const turn = (on: boolean): void => {
    store.set({ shortcuts: on });
    remember("shortcuts", on ? "on" : "off");
  };
  return (
    <Modal title={t("help")}>
      <p>{t("helpIntro")}</p>
      <table class="keys">
        <tbody>
          {KEYS.map(([key, text]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{t(text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <label class="check">
          <input type="checkbox" checked={shortcuts} onChange={() => turn(!shortcuts)} /> {t("shortcutsOn")}
        </label>
      </p>
      <h3>{t("statusTitle")}</h3>
      <dl class="statuses">
        {(
          [
            "definition",
            "derivation",
            "intuition",
            "example",
            "constructed",
            "computed",
            "measured",
            "recorded",
          ] as const
        ).map((each) => (
          <div key={each}>
            <dt>
              <Status status={each} />
            </dt>
            <dd>{t(`${each}Means`)}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">{t("indexMeans")}</p>
    </Modal>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{children}</td>
    </tr>
  );
}

function About() {
  const { header, engine } = useSession();
  const { t, pick } = useSpeech();
  const { replay, audit, observer } = header;
  const errors = Object.values(header.witnesses).map((each) => each.err_autograd ?? 0);
  const centrals = Object.values(header.witnesses).flatMap((each) => (each.central ? [each.central] : []));
  const sizes = Object.keys(header.scalars).map((name) => [name, engine.scalar(name)] as const);
  return (
    <Modal title={t("about")}>
      <p>{t(header.source === "toy24" ? "aboutToy" : header.provenance === "measured" ? "aboutRun" : "aboutModel")}</p>
      <table class="facts">
        <tbody>
          <Fact name={t("title")}>{picture(pick(header.title))}</Fact>
          <Fact name={t("version")}>
            glassformer {header.version}, {t("schema", { number: header.schema })}
          </Fact>
          <Fact name={t("sizes")}>
            <span class="sizes">
              {sizes.map(([name, value]) => (
                <code key={name}>
                  {name} = {value}
                </code>
              ))}
            </span>
          </Fact>
          <Fact name={t("pace")}>{t(PACES[engine.pace])}</Fact>
          <Fact name={t("replay")}>
            {replay
              ? t("replayTold", { worst: replay.worst.toFixed(2), unit: replay.unit, cells: replay.cells })
              : t("notRecorded")}
          </Fact>
          <Fact name={t("witnessesName")}>
            {t("autogradTold", { tensors: errors.length, error: rough(Math.max(0, ...errors)) })}{" "}
            {centrals.length > 0 &&
              t("centralTold", {
                cells: centrals.reduce((total, each) => total + each.cells.length, 0),
                error: rough(Math.max(...centrals.map((each) => each.max_abs_diff))),
              })}
          </Fact>
          <Fact name={t("audit")}>
            {audit
              ? t("auditTold", { operations: audit.operations, uncovered: audit.uncovered.length })
              : t("notRecorded")}
            {audit && audit.uncovered.length > 0 && <code>{audit.uncovered.join(", ")}</code>}
          </Fact>
          <Fact name={t("observer")}>
            {observer
              ? t("observerTold", { dtype: observer.dtype, difference: rough(observer.max_abs_logit_difference) })
              : t("notRecorded")}
            {Object.entries(observer?.others ?? {}).map(
              ([dtype, difference]) => " " + t("observerOther", { dtype, difference: rough(difference ?? NaN) }),
            )}
          </Fact>
        </tbody>
      </table>
      <p class="quiet small">{t("aboutOffline")}</p>
    </Modal>
  );
}

export function Dialogs() {
  const dialog = useStore((state) => state.dialog);
  if (!dialog) return null;
  if (dialog.kind === "latex") return <LatexDialog source={dialog.source} />;
  return dialog.kind === "help" ? <Help /> : <About />;
}
