/** Small menus that save what is drawn. */
import { useSession } from "../state/session.ts";
import { matrixLatex, matrixSvg, saveDrawing, figureSvg, type Format } from "./saving.ts";
import { useBookSpeech } from "./state.ts";

interface MenuProps {
  name: string;
  svg: () => string;
  latex?: () => void;
}

function Menu({ name, svg, latex }: MenuProps) {
  const say = useBookSpeech();
  const press = (event: MouseEvent, act: () => void): void => {
    act();
    if (event.currentTarget instanceof Element) event.currentTarget.closest("details")?.removeAttribute("open");
  };
  const draw = (format: Format) => (event: MouseEvent): void => press(event, () => saveDrawing(svg(), name, format));
  return (
    <details class="save-menu">
      <summary aria-label={say("saveAs", { name })} title={say("saveAs", { name })}>
        ⋯
      </summary>
      <div class="save-choices">
        <button type="button" onClick={draw("svg")}>
          {say("saveSvg")}
        </button>
        <button type="button" onClick={draw("png")}>
          {say("savePng")}
        </button>
        {latex && (
          <button type="button" onClick={(event) => press(event, latex)}>
            {say("asLatex")}
          </button>
        )}
      </div>
    </details>
  );
}

/** A matrix as drawing or as LaTeX. */
export function SaveMenu({ keyName }: { keyName: string }) {
  const session = useSession();
  return (
    <Menu
      name={keyName}
      svg={() => matrixSvg(session, keyName)}
      latex={() => session.store.set({ dialog: { kind: "latex", source: matrixLatex(session, keyName) } })}
    />
  );
}

/** The drawing inside `place`. */
export function SaveFigure({ name, place }: { name: string; place: () => SVGSVGElement | null }) {
  return (
    <Menu
      name={name}
      svg={() => {
        const drawn = place();
        return drawn ? figureSvg(drawn) : "";
      }}
    />
  );
}
