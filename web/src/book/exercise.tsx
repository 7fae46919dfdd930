/** Exercises: numbers to compute, fresh at each try, and sentences to choose from. */
import { useMemo, useState } from "preact/hooks";
import { SessionContext, useSession, useSpeech } from "../state/session.ts";
import { asked, programOf, shuffled } from "./answers.ts";
import type { ChooseExercise, ComputeExercise, Exercise, Program } from "./data.ts";
import { Verdict } from "./example.tsx";
import { usePaper } from "./paper.ts";
import { Desk, Sheet } from "./sheet.tsx";
import { useBook, useBookSpeech } from "./state.ts";
import { Told } from "./symbols.tsx";

/** A seed that nobody has asked for before. */
function freshSeed(): number {
  return Math.floor(Math.random() * 2 ** 31);
}

function Attempt({ exercise, program, again }: { exercise: ComputeExercise; program: Program; again: () => void }) {
  const session = useSession();
  const say = useBookSpeech();
  const cells = useMemo(() => asked(session.engine, exercise.ask), [session]);
  // What the definitions compute would give the answers away, asked for or not.
  const computed = useMemo(() => new Set(program.statements.map(({ target }) => target)), [program]);
  const paper = usePaper(cells, computed);
  const answers = [...new Set(cells.map(({ key }) => key))];
  return (
    <Desk>
      <Sheet show={program.show.filter((id) => !computed.has(id))} notes={program.notes} paper={null} editable={false} />
      <p class="live-hint">{say("answers")}</p>
      <Sheet show={answers} notes={program.notes} paper={paper} editable={false} />
      <div class="answer-tools">
        <button type="button" class="primary" onClick={paper.check}>
          {say("check")}
        </button>
        <button type="button" onClick={again}>
          {say("freshNumbers")}
        </button>
        <Verdict paper={paper} />
      </div>
    </Desk>
  );
}

function Compute({ exercise }: { exercise: ComputeExercise }) {
  const { shelf } = useBook();
  const [seed, setSeed] = useState(freshSeed);
  const [program, session] = useMemo(() => {
    const made = programOf(exercise, seed);
    return [made, shelf.attempt(made)] as const;
  }, [seed]);
  return (
    <SessionContext.Provider value={session}>
      <Attempt key={seed} exercise={exercise} program={program} again={() => setSeed(freshSeed())} />
    </SessionContext.Provider>
  );
}

function Choose({ exercise }: { exercise: ChooseExercise }) {
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const [seed] = useState(freshSeed);
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const order = useMemo(() => shuffled(exercise.options.length, seed), [seed]);
  const several = exercise.options.filter(({ right }) => right).length > 1;
  return (
    <>
    {several && <p class="live-hint">{say("chooseAll")}</p>}
    <ul class="options">
      {order.map((at) => {
        const { text, right, why } = exercise.options[at];
        const told = chosen.has(at);
        return (
          <li key={at} class={told ? (right ? "right" : "wrong") : ""}>
            <button type="button" aria-pressed={told} onClick={() => setChosen(new Set([...chosen, at]))}>
              <span>
                <Told text={pick(text)} />
              </span>
            </button>
            {told && (
              <p role="status">
                <b>{say(right ? "chosenRight" : "chosenWrong")}</b> <Told text={pick(why)} />
              </p>
            )}
          </li>
        );
      })}
    </ul>
    </>
  );
}

export function ExerciseView({ exercise }: { exercise: Exercise }) {
  const { pick } = useSpeech();
  const say = useBookSpeech();
  return (
    <section class="exercise-body">
      <header class="live-head">
        <h3>
          {say("exercise")}
          {exercise.title && ` · ${pick(exercise.title)}`}
        </h3>
      </header>
      <p class="exercise-text">
        <Told text={pick(exercise.text)} />
      </p>
      {exercise.kind === "compute" ? <Compute exercise={exercise} /> : <Choose exercise={exercise} />}
    </section>
  );
}
