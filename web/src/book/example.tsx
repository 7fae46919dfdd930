/** A worked example: its numbers, sliders and curves, with or without a pencil. */
import { useMemo, useRef } from "preact/hooks";
import { editCell, resetEdits } from "../state/actions.ts";
import { countedFrom, useSession, useSpeech, useStore } from "../state/session.ts";
import { cellName, cellTex } from "../state/symbols.ts";
import { short } from "../state/text.ts";
import { Axes, GROUND, VIEW_BOX, frameOf, pathOf } from "../views/chart.tsx";
import { Tex } from "../views/formula.tsx";
import { Prose } from "../views/prose.tsx";
import { Engine } from "../notation/engine.ts";
import { cellsOfTensor } from "./answers.ts";
import type { CurveOf, Example, Slider } from "./data.ts";
import { cellAt, curvePoints } from "./live.ts";
import { PlaneFigure } from "./plane.tsx";
import { usePaper, type Paper } from "./paper.ts";
import { SaveFigure } from "./save.tsx";
import { Desk, Sheet } from "./sheet.tsx";
import { useBook, useBookSpeech, useBookState } from "./state.ts";
import { Told } from "./symbols.tsx";

function SliderRow({ slider }: { slider: Slider }) {
  const session = useSession();
  const say = useBookSpeech();
  useStore((state) => state.version);
  const cell = cellAt(session.engine, slider);
  const value = session.engine.value(cell.key)[cell.flat];
  const { low, high, step } = slider;
  const told = short(value + countedFrom(session, cell.key), 4);
  return (
    <label class="slider">
      <span class="slider-name">
        <Tex tex={cellTex(session, cell)} />
      </span>
      <input
        type="range"
        min={low}
        max={high}
        // A number between two steps stays what it is until it is moved.
        step="any"
        value={value}
        aria-label={say("slide", { name: cellName(session, cell) })}
        aria-valuetext={told}
        onInput={(event) => {
          const moved = low + Math.round((Number(event.currentTarget.value) - low) / step) * step;
          editCell(session, cell.key, cell.flat, Number(moved.toPrecision(12)));
        }}
        onKeyDown={(event) => {
          const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
          if (by === undefined) return;
          event.preventDefault();
          const moved = Math.min(high, Math.max(low, value + by * step));
          editCell(session, cell.key, cell.flat, Number(moved.toPrecision(12)));
        }}
      />
      <output class="digits">{told}</output>
    </label>
  );
}

/** `d_k` along an axis, where no formula can stand: the subscript smaller and lower. */
function Lowered({ name }: { name: string }) {
  const [letter, ...low] = name.split("_");
  return (
    <>
      {letter}
      {low.length > 0 && (
        <tspan dy="4" font-size="11">
          {low.join("_")}
        </tspan>
      )}
    </>
  );
}

function CurveFigure({ curve, example }: { curve: CurveOf; example: Example }) {
  const session = useSession();
  const { pick } = useSpeech();
  const version = useStore((state) => state.version);
  const place = useRef<SVGSVGElement>(null);
  const second = useMemo(() => Engine.of(session.trace), [session]);
  const slider = example.sliders[curve.slider];
  const { xs, ys } = useMemo(
    () => curvePoints(curve, slider, session.engine, second, Object.keys(example.inputs)),
    [version],
  );
  const moved = cellAt(session.engine, slider);
  const now = session.engine.value(moved.key)[moved.flat];
  const cells = curve.ys.map((y) => cellAt(session.engine, y));
  const values = cells.map(({ key, flat }) => session.engine.value(key)[flat]);
  const frame = frameOf([...xs, now], [...ys.flat(), ...values]);
  return (
    <figure class="curve-figure">
      <figcaption>
        <span><Told text={pick(curve.title)} /></span>
        <SaveFigure name={`${example.id}-${curve.slider + 1}`} place={() => place.current} />
      </figcaption>
      <svg ref={place} class="curve" viewBox={VIEW_BOX} role="img" aria-label={pick(curve.title)}>
        <Axes frame={frame} across={<Lowered name={cellName(session, moved)} />} up="" />
        <line class="now-line" x1={frame.x(now)} x2={frame.x(now)} y1={frame.y(frame.up[1])} y2={GROUND} />
        {cells.map((cell, k) => (
          <g key={`${cell.key}:${cell.flat}`} class={`line-${k % 4}`}>
            <path class="line" d={pathOf(frame, xs, ys[k])} />
            <circle class="point" cx={frame.x(now)} cy={frame.y(values[k])} r="4" />
          </g>
        ))}
      </svg>
      <ul class="curve-key">
        {cells.map((cell, k) => (
          <li key={`${cell.key}:${cell.flat}`} class={`line-${k % 4}`}>
            <Tex tex={cellTex(session, cell)} /> <span class="digits">{short(values[k], 4)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** What the last check found, in words, and the way to the arithmetic of the first wrong cell. */
export function Verdict({ paper }: { paper: Paper }) {
  const session = useSession();
  const say = useBookSpeech();
  const { found } = paper;
  if (!found) return null;
  const { wrong, open, written } = found;
  if (wrong) {
    return (
      <p class="verdict wrong" role="status">
        <Prose text={say("firstWrong", { name: `$${cellTex(session, wrong)}$` })} />{" "}
        <button type="button" onClick={paper.hint}>
          {say("hint")}
        </button>
      </p>
    );
  }
  const told = written === 0 ? say("nothingYet") : open > 0 ? say("someOpen", { open }) : say("allRight");
  return (
    <p class={written > 0 && open === 0 ? "verdict right" : "verdict"} role="status">
      {told}
    </p>
  );
}

function ExampleBody({ example }: { example: Example }) {
  const session = useSession();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const book = useBook();
  const pencil = useBookState((state) => state.pencil);
  const edited = useStore((state) => state.edited);
  useStore((state) => state.version);
  const computed = useMemo(() => {
    const made = new Set(example.statements.map(({ target }) => target));
    return new Set(example.show.filter((id) => made.has(id)));
  }, [example]);
  const cells = useMemo(() => [...computed].flatMap((id) => cellsOfTensor(session.engine, id)), [computed]);
  const paper = usePaper(cells, computed);
  return (
    <>
      <header class="live-head">
        <h3><Told text={pick(example.title)} /></h3>
        <span class="live-tools">
          <label class="check">
            <input
              type="checkbox"
              checked={pencil}
              onChange={() => {
                paper.clear();
                book.store.set({ pencil: !pencil });
              }}
            />{" "}
            {say("pencil")}
          </label>
          <button type="button" disabled={!edited} onClick={() => resetEdits(session)}>
            {say("reset")}
          </button>
        </span>
      </header>
      <p class="live-hint">{say(pencil ? "pencilTold" : "changeHint")}</p>
      <Desk>
        <Sheet show={example.show} notes={example.notes} paper={pencil ? paper : null} editable />
        {pencil && (
          <div class="answer-tools">
            <button type="button" class="primary" onClick={paper.check}>
              {say("check")}
            </button>
            <Verdict paper={paper} />
          </div>
        )}
      </Desk>
      {example.sliders.length > 0 && (
        <div class="sliders">
          {example.sliders.map((slider) => (
            <SliderRow key={`${slider.id}:${slider.index.join()}`} slider={slider} />
          ))}
        </div>
      )}
      {!pencil &&
        example.planes?.map((plane) => (
          <PlaneFigure key={plane.point} plane={plane} name={`${example.id}-${plane.point}`} />
        ))}
      {!pencil && example.curves.map((curve, k) => <CurveFigure key={k} curve={curve} example={example} />)}
    </>
  );
}

export function LiveExample({ example }: { example: Example }) {
  return (
    <section class="live-body" aria-label={useSpeech().pick(example.title)}>
      <ExampleBody example={example} />
    </section>
  );
}
