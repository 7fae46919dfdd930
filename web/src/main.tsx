/** Where the page starts: read the trace, build the computer, draw. */
import "katex/dist/katex.css";
import "./styles/theme.css";
import "./styles/base.css";
import "./styles/run.css";
import "./styles/layout.css";
import "./styles/parts.css";
import "./styles/matrices.css";
import "./styles/map.css";
import "./styles/inspector.css";
import "./styles/sections.css";
import "./styles/probes.css";
import "./styles/print.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { traceOfDocument, type Trace } from "./data/trace.ts";
import type { Header } from "./data/types.ts";
import { Engine } from "./notation/engine.ts";
import { styleOf } from "./notation/symbols.ts";
import { select } from "./state/actions.ts";
import type { Session } from "./state/session.ts";
import { cellOfAddress, keepColours, startingLanguage, startingState } from "./state/settings.ts";
import { Store } from "./state/store.ts";
import { structureOf } from "./state/structure.ts";

declare global {
  interface Window {
    /** For tests and the curious: the numbers behind the page. */
    readonly glassformer?: { engine: Engine; header: Header; trace: Trace };
  }
}

function begin(trace: Trace): Session {
  const { header } = trace;
  const engine = Engine.of(trace);
  const structure = structureOf(header);
  const store = new Store(startingState(header, structure, engine, startingLanguage(document.documentElement.lang)));
  keepColours(store);
  const session: Session = { trace, header, structure, engine, store, style: styleOf(header), running: null };
  const named = cellOfAddress(location.hash, engine);
  if (named) select(session, named);
  return session;
}

function start(): void {
  const root = document.getElementById("app");
  if (!root) return;
  try {
    const session = begin(traceOfDocument(document));
    const { engine, header, trace } = session;
    Object.defineProperty(window, "glassformer", { value: Object.freeze({ engine, header, trace }) });
    render(<App session={session} />, root);
  } catch (error) {
    console.error(error);
    render(<p role="alert">{error instanceof Error ? error.message : String(error)}</p>, root);
  }
}

start();
