/** Copying a text: the page may have no clipboard (a file, a sandboxed frame), then the reader copies by hand. */

/** Copies by whichever way the browser allows; false when it allows none. The field is selected in any case. */
export async function copy(field: HTMLTextAreaElement): Promise<boolean> {
  field.focus();
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    field.focus();
    field.select();
    try {
      return document.execCommand("copy");
    } catch {
      return false;
    }
  }
}
