/** The head of the page: title, tools, the five views. */
import { traceCommand } from "../state/command.ts";
import { downloadCsv, downloadJson } from "../state/download.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { isSmall } from "../state/settings.ts";
import { VIEWS, WITHOUT_UPDATE, type Theme } from "../state/store.ts";
import { Losses } from "./runbar.tsx";
import { picture } from "../state/text.ts";
import { leaveProbes } from "../state/actions.ts";
import { startWalk } from "./walk.tsx";
import { walksFor } from "../walks.ts";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function Language() {
  const { store } = useSession();
  const language = useStore((state) => state.language);
  const other = language === "en" ? "zh" : "en";
  return (
    <button type="button" lang={other} onClick={() => store.set({ language: other })} data-tool="language">
      {other === "zh" ? "中文" : "English"}
    </button>
  );
}

function Tools() {
  const session = useSession();
  const { t, pick } = useSpeech();
  const theme = useStore((state) => state.theme);
  const { store, header } = session;
  return (
    <div class="tools">
      {walksFor(header).map((walk) => (
        <button
          key={walk.id}
          type="button"
          onClick={() => startWalk(session, walk)}
          title={pick(walk.title).replaceAll("$", "")}
        >
          {t("walkShort", { name: walk.id === "query" ? "W_Q" : "E" })}
        </button>
      ))}
      {header.derivations.length > 0 && (
        <a class="button" href="#derivations" onClick={() => leaveProbes(session)}>
          {t("derivations")}
        </a>
      )}
      <details class="menu">
        <summary>{t("download")}</summary>
        <div>
          {session.engine.pace === "recorded" ? (
            <p class="small">
              {t("tooManyNumbers")} <code>{traceCommand(header, ["--json", "numbers.json"])}</code>
            </p>
          ) : (
            <>
              <button type="button" onClick={() => downloadJson(session)}>
                {t("downloadJson")}
              </button>
              <button type="button" onClick={() => downloadCsv(session)}>
                {t("downloadCsv")}
              </button>
            </>
          )}
        </div>
      </details>
      <button type="button" onClick={() => store.set({ dialog: { kind: "about" } })}>
        {t("about")}
      </button>
      <Digits />
      <Language />
      <button type="button" onClick={() => store.set({ theme: NEXT[theme] })} data-tool="theme">
        {t(`theme_${theme}`)}
      </button>
      <button
        type="button"
        onClick={() => store.set({ dialog: { kind: "help" } })}
        aria-label={t("help")}
        title={t("help")}
      >
        ?
      </button>
    </div>
  );
}

function Digits() {
  const { store } = useSession();
  const { t } = useSpeech();
  const digits = useStore((state) => state.digits);
  return (
    <label class="digits-choice">
      <span class="sr">{t("decimals")}</span>
      <select
        value={String(digits)}
        title={t("decimals")}
        onChange={(event) => store.set({ digits: Number(event.currentTarget.value) })}
      >
        {[3, 6, 12].map((each) => (
          <option key={each} value={String(each)}>
            {t("decimalsOption", { count: each })}
          </option>
        ))}
      </select>
    </label>
  );
}

export function TopBar() {
  const { header } = useSession();
  const { pick } = useSpeech();
  return (
    <header class="top-bar">
      <p class="brand">glassformer</p>
      <h1>{picture(pick(header.title))}</h1>
      <Tools />
    </header>
  );
}

const KINDS = ["input", "parameter", "intermediate", "coefficient", "probability", "loss", "gradient"] as const;

export function Legend() {
  const { store, structure } = useSession();
  const { t } = useSpeech();
  const stretched = useStore((state) => state.stretched);
  return (
    <div class="legends">
      <ul class="legend" aria-label={t("legend")}>
        {KINDS.map((kind) => (
          <li key={kind} class={`k-${kind}`}>
            <i class="dot" aria-hidden="true" />
            {t(`kind_${kind}`)}
          </li>
        ))}
      </ul>
      {!isSmall(structure) && (
        <label class="legend">
          {t("heatColours")}
          <select
            value={stretched ? "1" : "0"}
            onChange={(event) => store.set({ stretched: event.currentTarget.value === "1" })}
          >
            <option value="0">{t("heatLinear")}</option>
            <option value="1">{t("heatStretched")}</option>
          </select>
        </label>
      )}
    </div>
  );
}

export function Views() {
  const { store, engine } = useSession();
  const { t } = useSpeech();
  const view = useStore((state) => state.view);
  const updates = engine.parameters.length > 0;
  return (
    <section class="views" aria-label={t("views")}>
      <nav class="view-tabs" aria-label={t("views")}>
        {VIEWS.filter((each) => updates || WITHOUT_UPDATE.has(each)).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={view === each}
            data-view={each}
            onClick={() => store.set({ view: each })}
          >
            <kbd aria-hidden="true">{VIEWS.indexOf(each) + 1}</kbd>
            {each === "compare" ? (
              <>
                <span class="wide-only">{t(each)}</span>
                <span class="narrow-only">{t("changeNoun")}</span>
              </>
            ) : (
              t(each)
            )}
          </button>
        ))}
      </nav>
      <Losses />
    </section>
  );
}
