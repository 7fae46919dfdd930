/** Everything that is computed on the book's pages: one session for the book, one for each example, exercise and run. */
import type { Trace } from "../data/trace.ts";
import type { Language } from "../data/types.ts";
import { Engine } from "../notation/engine.ts";
import { styleOf } from "../notation/symbols.ts";
import type { Session } from "../state/session.ts";
import { startingState } from "../state/settings.ts";
import { Store, type View } from "../state/store.ts";
import { structureOf } from "../state/structure.ts";
import { type BookData, type Program, traceOf } from "./data.ts";
import { type Address, type Change, applyChanges, changesOf } from "./links.ts";
import { bareHeader, traceOfProgram } from "./live.ts";

export function sessionOf(trace: Trace, language: Language): Session {
  const { header } = trace;
  const engine = Engine.of(trace);
  const structure = structureOf(header);
  const store = new Store(startingState(header, structure, engine, language));
  return { trace, header, structure, engine, store, style: styleOf(header), running: null };
}

/** The session of the book itself: language, theme and the like, and no numbers. */
export function rootSession(language: Language): Session {
  return sessionOf({ header: bareHeader(), keys: [], tensor: () => undefined }, language);
}

/** Sessions by name, made when first needed; all speak the book's language and follow its theme. */
export class Shelf {
  private readonly sessions = new Map<string, Session>();
  /** Every session that computes with the numbers of a source: a run may be shown in several views. */
  private readonly bySource = new Map<string, Session[]>();
  /** Changes of an address to what has not been opened yet. */
  private waiting: readonly Change[] = [];

  constructor(
    readonly data: BookData,
    readonly root: Session,
    /** Called after a reader changed a number of an example or a run. */
    private readonly changed: () => void,
  ) {}

  example(id: string): Session {
    return this.made(`example ${id}`, id, () => this.ofProgram(this.data.examples[id]));
  }

  /** A run in one of its views; all views of a run share its numbers. */
  run(id: string, view: View): Session {
    return this.made(`run ${id} ${view}`, id, () => {
      const sibling = this.bySource.get(id)?.[0];
      const first = sibling ?? sessionOf(traceOf(this.data.runs[id]), this.language);
      const { header, structure, engine } = first;
      const store = new Store({ ...startingState(header, structure, engine, this.language), view });
      return { ...first, store };
    });
  }

  /** A session of numbers drawn for one try of an exercise; nobody else uses it. */
  attempt(program: Program): Session {
    const session = this.ofProgram(program);
    this.follow(session);
    return session;
  }

  private get language(): Language {
    return this.root.store.get().language;
  }

  private ofProgram(program: Program): Session {
    const session = sessionOf(traceOfProgram(program), this.language);
    session.texts = program.labels;
    session.places = new Set(program.places);
    return session;
  }

  private made(name: string, source: string, make: () => Session): Session {
    const known = this.sessions.get(name);
    if (known) return known;
    const session = make();
    this.sessions.set(name, session);
    const beside = this.bySource.get(source) ?? [];
    this.bySource.set(source, [...beside, session]);
    this.follow(session);
    this.tellOthers(source, session);
    this.put(this.waiting.filter((change) => change.source === source));
    return session;
  }

  /** Language, theme and printing are the book's. */
  private follow(session: Session): void {
    const take = (): void => {
      const { language, theme, systemIsDark, printing } = this.root.store.get();
      const own = session.store.get();
      const same = own.language === language && own.theme === theme && own.printing === printing;
      if (!same || own.systemIsDark !== systemIsDark) session.store.set({ language, theme, systemIsDark, printing });
    };
    take();
    this.root.store.subscribe(take);
  }

  /** A change in one view of a run shows in the others. */
  private tellOthers(source: string, session: Session): void {
    let { version } = session.store.get();
    session.store.subscribe(() => {
      const now = session.store.get();
      if (now.version === version) return;
      version = now.version;
      for (const other of this.bySource.get(source) ?? []) {
        if (other.store.get().version !== version) other.store.set({ version, edited: now.edited });
      }
      this.changed();
    });
  }

  /** Everything that readers changed, for the address. */
  changes(): Change[] {
    const open = [...this.bySource].flatMap(([source, [first]]) => changesOf(source, first.engine));
    const unopened = this.waiting.filter(({ source }) => !this.bySource.has(source));
    return [...open, ...unopened];
  }

  /** Puts in the changes of an address; those of examples that are not open yet wait for them. */
  restore({ changes }: Pick<Address, "changes">): void {
    this.waiting = changes;
    this.put(changes);
  }

  private put(changes: readonly Change[]): void {
    for (const source of new Set(changes.map((change) => change.source))) {
      const sessions = this.bySource.get(source) ?? [];
      const engine = sessions.at(0)?.engine;
      if (!engine || engine.pace !== "live") continue;
      engine.reset();
      if (!applyChanges(engine, changes.filter((change) => change.source === source))) continue;
      this.waiting = this.waiting.filter((change) => change.source !== source);
      engine.recompute();
      for (const { store } of sessions) store.set({ version: engine.version, edited: engine.edited() });
    }
  }
}
