/** The way, part by part, in the order of the chosen view: forward from the tokens, backward from the loss. */
import { togglePart } from "../state/actions.ts";
import { blockId } from "../state/mapping.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import type { View } from "../state/store.ts";
import type { Part } from "../state/structure.ts";
import { tensorTex } from "../state/symbols.ts";
import { noteFor } from "../notes.ts";
import { Card, keysIn } from "./card.tsx";
import { AtOnce, LazyTex } from "./formula.tsx";
import { Prose } from "./prose.tsx";
import { Status } from "./status.tsx";

function Note({ part, view }: { part: Part; view: View }) {
  const { header } = useSession();
  const { pick } = useSpeech();
  const note = noteFor(part, view, header);
  if (!note) return null;
  return (
    <p class="note">
      <Status status={note.status} /> <Prose text={pick(note.text)} />
    </p>
  );
}

/** What a closed part holds, in symbols. */
function Summary({ part, view }: { part: Part; view: View }) {
  const session = useSession();
  const shown = part.quantities.filter((quantity) => keysIn(view, quantity, session));
  return (
    <span class="summary" aria-hidden="true">
      {shown.map((quantity) => (
        <LazyTex key={quantity.id} tex={tensorTex(session, quantity.id)} plain={quantity.name} />
      ))}
    </span>
  );
}

function PartSection({ part, view }: { part: Part; view: View }) {
  const session = useSession();
  const { pick } = useSpeech();
  const open = useStore((state) => state.printing || state.open.has(part.id));
  const Title = part.block === null ? "h2" : "h3";
  const quantities = view === "gradient" ? [...part.quantities].reverse() : part.quantities;
  return (
    <section class={open ? "part open" : "part"} id={`part-${part.id}`}>
      <Title class="part-title">
        <button type="button" aria-expanded={open} onClick={() => togglePart(session, part.id)}>
          <span class="twist" aria-hidden="true" />
          {pick(part.title)}
          {!open && <Summary part={part} view={view} />}
        </button>
      </Title>
      {open && (
        <div class="part-body">
          <Note part={part} view={view} />
          <div class="cards">
            {quantities.map((quantity) => (
              <Card key={quantity.id} quantity={quantity} view={view} level={part.block === null ? "h3" : "h4"} />
            ))}
          </div>
        </div>
      )}
    </section>
  );
}

/** Parts of one block together, the others alone, in the order of the view. */
function blocksOf(parts: Part[]): { block: number | null; parts: Part[] }[] {
  const groups: { block: number | null; parts: Part[] }[] = [];
  for (const part of parts) {
    const last = groups.at(-1);
    if (last && last.block === part.block) last.parts.push(part);
    else groups.push({ block: part.block, parts: [part] });
  }
  return groups;
}

function PartList({ parts, view }: { parts: Part[]; view: View }) {
  return (
    <>
      {parts.map((part) => (
        <PartSection key={part.id} part={part} view={view} />
      ))}
    </>
  );
}

function Block({ block, parts, view }: { block: number; parts: Part[]; view: View }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const id = blockId(block);
  const open = useStore((state) => state.printing || state.open.has(id));
  return (
    <div class={open ? "stretch block open" : "stretch block"} id={`block-${id}`}>
      <h2 class="block-title">
        <button type="button" aria-expanded={open} onClick={() => togglePart(session, id)}>
          <span class="twist" aria-hidden="true" />
          {t("block", { number: block + 1 })}
          {!open && <span class="summary">{parts.map((part) => pick(part.title)).join(" · ")}</span>}
        </button>
      </h2>
      {open && <PartList parts={parts} view={view} />}
    </div>
  );
}

interface PartsProps {
  /** How many parts are there, from the first. */
  most?: number;
  /** Those before the first block do not wait until they come near the screen. */
  firstAtOnce?: boolean;
}

export function Parts({ most = Infinity, firstAtOnce = false }: PartsProps) {
  const session = useSession();
  const view = useStore((state) => state.view);
  const shown = session.structure.parts.filter((part) => part.quantities.some((each) => keysIn(view, each, session)));
  const ordered = (view === "gradient" ? [...shown].reverse() : shown).slice(0, most);
  return (
    <>
      {blocksOf(ordered).map(({ block, parts }, at) => (
        <AtOnce.Provider key={parts[0].id} value={firstAtOnce && at === 0}>
          {block === null ? (
            <div class="stretch">
              <PartList parts={parts} view={view} />
            </div>
          ) : (
            <Block block={block} parts={parts} view={view} />
          )}
        </AtOnce.Provider>
      ))}
    </>
  );
}
