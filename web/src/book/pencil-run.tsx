/** A small run on paper: what is given stands there, what the view computes is to be filled in. */
import { useMemo } from "preact/hooks";
import type { QuantityInfo } from "../data/types.ts";
import { keyOf } from "../state/keys.ts";
import { useSession, type Session } from "../state/session.ts";
import type { View } from "../state/store.ts";
import { keysIn } from "../views/card.tsx";
import { cellsOfTensor } from "./answers.ts";
import { Verdict } from "./example.tsx";
import { usePaper } from "./paper.ts";
import { Desk, Sheet } from "./sheet.tsx";
import { useBookSpeech } from "./state.ts";

const GIVEN = new Set(["input", "parameter", "constant", "optimizer state"]);

interface Asked {
  /** Tensors in the order in which they are read, those asked for among them. */
  show: string[];
  asked: Set<string>;
}

/** What a view asks of one quantity, after what it is computed from. */
function keysOf(session: Session, view: View, quantity: QuantityInfo): { given: string[]; asked: string[] } {
  const keys = keysIn(view, quantity, session);
  const { engine } = session;
  const { id, kind } = quantity;
  if (!keys) return { given: [], asked: [] };
  if (view === "gradient") return { given: [id], asked: [keyOf(id, "grad")] };
  if (view === "update") return { given: [id, keyOf(id, "grad")], asked: [keyOf(id, "new")] };
  const last = keys.second ?? keys.key;
  const { face } = engine.split(last);
  // The parameters after the step are where the pass after it begins.
  if (GIVEN.has(kind)) return { given: [last], asked: [] };
  return { given: face !== "" && view === "compare" ? [id] : [], asked: [last] };
}

export function askedOf(session: Session, view: View): Asked {
  const quantities = session.structure.parts.flatMap((part) => part.quantities);
  const ordered = view === "gradient" ? quantities.toReversed() : quantities;
  const found = ordered.map((quantity) => keysOf(session, view, quantity));
  const held = (key: string): boolean => session.engine.holds(key);
  return {
    show: found.flatMap(({ given, asked }) => [...given, ...asked]).filter(held),
    asked: new Set(found.flatMap(({ asked }) => asked).filter(held)),
  };
}

export function PencilRun({ view }: { view: View }) {
  const session = useSession();
  const say = useBookSpeech();
  const { show, asked } = useMemo(() => askedOf(session, view), [view]);
  const cells = useMemo(() => [...asked].flatMap((key) => cellsOfTensor(session.engine, key)), [asked]);
  const paper = usePaper(cells, asked);
  return (
    <>
      <p class="live-hint">{say("pencilTold")}</p>
      <Desk>
        <Sheet show={show} notes={{}} paper={paper} editable />
        <div class="answer-tools">
          <button type="button" class="primary" onClick={paper.check}>
            {say("check")}
          </button>
          <Verdict paper={paper} />
        </div>
      </Desk>
    </>
  );
}
