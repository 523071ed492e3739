// Text typed over a selection.

import { EditorView } from "@codemirror/view";

/**
 * Replaces the selection by what is typed. Otherwise the browser does that first, in the editor's elements, and the editor reads
 * what came of it: Chromium takes a minute to remove a line of two thousand coloured words.
 */
export const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    const { main, ranges } = state.selection;
    const text = event.data;
    // Texts that are composed, as in Chinese, stay the browser's.
    if (event.inputType !== "insertText" || text === null || event.isComposing || view.composing || main.empty || ranges.length > 1) return false;
    const insert = () => state.update(state.replaceSelection(state.toText(text)), { userEvent: "input.type", scrollIntoView: true });
    if (!state.facet(EditorView.inputHandler).some((handler) => handler(view, main.from, main.to, text, insert))) view.dispatch(insert());
    return true;
  },
});
