/** What opens over the page, and the LaTeX of a formula in it, to be copied. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { copy } from "../state/clipboard.ts";
import { useSession, useSpeech } from "../state/session.ts";

/** A modal dialog; the browser keeps the focus inside and gives it back when it closes. */
export function Modal({ title, children }: { title: string; children: ComponentChildren }) {
  const { store } = useSession();
  const { t } = useSpeech();
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => place.current?.showModal(), []);
  const close = (): void => place.current?.close();
  return (
    <dialog
      ref={place}
      aria-label={title}
      onClose={() => store.set({ dialog: null })}
      onClick={(event) => {
        if (event.target === place.current) close();
      }}
    >
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" onClick={close}>
            {t("close")}
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

export function LatexDialog({ source }: { source: string }) {
  const { t } = useSpeech();
  const field = useRef<HTMLTextAreaElement>(null);
  const [told, setTold] = useState("");
  const press = async (): Promise<void> => {
    if (field.current) setTold((await copy(field.current)) ? t("copied") : t("copyByHand"));
  };
  useEffect(() => field.current?.select(), []);
  return (
    <Modal title={t("latexTitle")}>
      <textarea
        ref={field}
        readOnly
        rows={Math.min(10, 2 + Math.ceil(source.length / 60))}
        value={source}
        aria-label={t("latexTitle")}
        spellcheck={false}
      />
      <footer>
        <button type="button" class="primary" onClick={() => void press()}>
          {t("copy")}
        </button>
        <span role="status">{told}</span>
      </footer>
    </Modal>
  );
}
