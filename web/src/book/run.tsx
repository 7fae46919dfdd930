/** A run of the trace page inside a chapter: its matrices in one view, every number to be followed and changed. */
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { VIEWS, type View } from "../state/store.ts";
import { splitKey } from "../state/keys.ts";
import { picture } from "../state/text.ts";
import { Editor } from "../views/editor.tsx";
import { Parts } from "../views/parts.tsx";
import { RunBar } from "../views/runbar.tsx";
import { UpdatePanel } from "../views/update.tsx";
import { isSmall } from "../state/settings.ts";
import { PencilRun } from "./pencil-run.tsx";
import { Desk } from "./sheet.tsx";
import { useBookState } from "./state.ts";

/** Reports of probes stand in the chapters themselves. */
const SHOWN = VIEWS.filter((view) => view !== "probes");

function ViewChoice() {
  const { store, engine } = useSession();
  const { t } = useSpeech();
  const view = useStore((state) => state.view);
  const offered = engine.parameters.length > 0 ? SHOWN : SHOWN.slice(0, 2);
  return (
    <div class="run-views" role="group" aria-label={t("views")}>
      {offered.map((each) => (
        <button type="button" key={each} aria-pressed={each === view} onClick={() => store.set({ view: each })}>
          {t(each)}
        </button>
      ))}
    </div>
  );
}

/** The means to change the looked-at number, beside how it came about. */
function Change() {
  const selected = useStore((state) => state.selected);
  if (!selected) return null;
  const { id, face } = splitKey(selected.key);
  return face === "" ? <Editor id={id} cell={selected} /> : null;
}

/** Of its parts, the first `most`. */
export function RunView({ most }: { most: number }) {
  const session = useSession();
  const { pick } = useSpeech();
  const view: View = useStore((state) => state.view);
  const pencil = useBookState((state) => state.pencil);
  return (
    <section class="run-body">
      <header class="live-head">
        <h3>{picture(pick(session.header.title))}</h3>
      </header>
      <ViewChoice />
      <RunBar />
      {pencil && isSmall(session.structure) ? (
        <PencilRun key={view} view={view} />
      ) : (
        <Desk before={<Change />}>
          <div class="run-parts">
            {view === "update" && <UpdatePanel />}
            <Parts most={most} firstAtOnce />
          </div>
        </Desk>
      )}
    </section>
  );
}
