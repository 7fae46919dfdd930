/** Formulas with two faces and derivations that unfold, as they stand between paragraphs. */
import { useEffect, useRef, useState } from "preact/hooks";
import { copy } from "../state/clipboard.ts";
import { useSpeech, useStore } from "../state/session.ts";
import { Line } from "../views/derivations.tsx";
import { StepButtons } from "../views/unfolding.tsx";
import { Tex } from "../views/formula.tsx";
import { LatexDialog } from "../views/latex.tsx";
import type { Chain } from "./data.ts";
import { useBookSpeech } from "./state.ts";
import { Told } from "./symbols.tsx";

/** The source of a formula, copied when it opens; where the clipboard is refused it is selected for the keyboard. */
function Source({ tex, close }: { tex: string; close: () => void }) {
  const say = useBookSpeech();
  const field = useRef<HTMLTextAreaElement>(null);
  const [told, setTold] = useState("");
  const press = async (): Promise<void> => {
    if (field.current) setTold(say((await copy(field.current)) ? "copied" : "copyByHand"));
  };
  useEffect(() => void press(), [tex]);
  return (
    <div class="source-tex" onKeyDown={(event) => event.key === "Escape" && close()}>
      <textarea
        ref={field}
        readOnly
        rows={Math.min(6, Math.ceil(tex.length / 64))}
        value={tex}
        aria-label={say("latexShown")}
        spellcheck={false}
        onClick={() => void press()}
      />
      <span role="status">{told}</span>
      <button type="button" class="quiet-button" aria-label={say("closeArithmetic")} onClick={close}>
        ×
      </button>
    </div>
  );
}

/** The source with a little more room where the eye needs it; what is copied stays the source. */
function spaced(tex: string): string {
  const apart = tex.replace(/\\mathbf ?\{?1\}? ?(?=\\mathrm)/g, "\\mathbf{1}\\,");
  return apart.replace(/\\begin\{cases\}.*?\\end\{cases\}/gs, (cases) =>
    cases.includes("\\frac") || cases.includes("\\sum") ? cases.replaceAll(" \\\\ ", " \\\\[1em] ") : cases,
  );
}

interface FaceProps {
  tex: string;
  label: string | null;
  press: () => void;
}

function Face({ tex, label, press }: FaceProps) {
  const say = useBookSpeech();
  return (
    <div class="face">
      {label && <span class="face-label">{label}</span>}
      <div
        class="face-tex"
        role="button"
        tabIndex={0}
        title={say("latexShown")}
        onClick={() => {
          // Who selects a part of a formula does not ask for its source.
          if ((window.getSelection()?.toString() ?? "") === "") press();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          press();
        }}
      >
        <Tex tex={spaced(tex)} display />
      </div>
    </div>
  );
}

/** A definition: for the whole matrix first, cell by cell beside it. */
export function TwoFaces({ index, matrix }: { index: string; matrix: string | null }) {
  const say = useBookSpeech();
  const [open, setOpen] = useState<string | null>(null);
  const both = matrix !== null && matrix !== index;
  const press = (tex: string) => (): void => setOpen(open === tex ? null : tex);
  return (
    <>
      <div class={both ? "faces both" : "faces"}>
        {both && <Face tex={matrix} label={say("facesMatrix")} press={press(matrix)} />}
        <Face tex={index} label={both ? say("facesIndex") : null} press={press(index)} />
      </div>
      {open !== null && <Source tex={open} close={() => setOpen(null)} />}
    </>
  );
}

export function ChainView({ chain }: { chain: Chain }) {
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const printing = useStore((state) => state.printing);
  const dialog = useStore((state) => state.dialog);
  const [unfolded, show] = useState(0);
  const count = chain.steps.length;
  const shown = printing ? count : unfolded;
  return (
    <section class={shown > 0 ? "derivation open" : "derivation"} aria-label={pick(chain.title)}>
      <h3>
        <button type="button" aria-expanded={shown > 0} onClick={() => show(unfolded > 0 ? 0 : 1)}>
          <span class="twist" aria-hidden="true" />
          <span><Told text={pick(chain.title)} /></span>
        </button>
        <span class="quiet small">{say("lines", { count })}</span>
      </h3>
      {shown > 0 && (
        <>
          <ol class="steps">
            {chain.steps.slice(0, shown).map((step, at) => (
              <Line
                key={at}
                step={at === 0 ? step : { ...step, latex: `= ${step.latex}` }}
                number={at + 1}
                reason={<Told text={pick(step.reason)} />}
              >
                {step.premises?.map((name) => {
                  const premise = chain.premises?.[name];
                  return premise && <p class="premise small"><Told text={say("premise", { text: pick(premise) })} /></p>;
                })}
              </Line>
            ))}
          </ol>
          <StepButtons shown={shown} count={count} show={show} />
        </>
      )}
      {dialog?.kind === "latex" && <LatexDialog source={dialog.source} />}
    </section>
  );
}
