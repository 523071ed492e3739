// The editor. It lives in a shadow root: there its styles are style sheets of the program's own making, which a policy without
// inline styles allows.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, temporarilySetTabFocusMode } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, forEachDiagnostic, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, type ViewUpdate } from "@codemirror/view";
import { styleTags, tags } from "@lezer/highlight";
import { SparqlLanguage } from "codemirror-lang-sparql";
import type { Fault, Problem } from "../net/http.ts";
import { declaration, declared } from "../rdf/prefixes.ts";
import { prefixes } from "../show.ts";
import { complete } from "./complete.ts";
import { unitAt, unitOf } from "./places.ts";
import { replaceSelection } from "./replace.ts";
import { isCode } from "./tokens.ts";

/** The package leaves names, languages and numbers plain. */
const language = SparqlLanguage.configure({
  props: [
    styleTags({
      "Pname_ln Pname_ns": tags.propertyName,
      IriRef: tags.url,
      "Var Var/...": tags.variableName,
      "A_predicate Keyword A_predicate/...": tags.keyword,
      Langtag: tags.annotation,
      Blank_node_label: tags.labelName,
      "Integer IntegerPositive IntegerNegative Decimal DecimalPositive DecimalNegative Double DoublePositive DoubleNegative": tags.number,
    }),
  ],
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: [tags.string], color: "var(--code-string)" },
  { tag: [tags.number, tags.integer, tags.float, tags.bool], color: "var(--code-number)" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: [tags.url, tags.namespace, tags.propertyName], color: "var(--code-name)" },
  { tag: [tags.annotation, tags.labelName], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--field)", fontSize: "14px", maxHeight: "inherit", minHeight: "inherit" },
  "&.cm-focused": { outline: "none" },
  // The text reaches to the lower end, so that a click anywhere gets the focus.
  ".cm-scroller": { flex: "1 1 auto", fontFamily: "var(--mono)", height: "auto", lineHeight: "1.5", minHeight: "0" },
  ".cm-content": { alignSelf: "stretch", caretColor: "var(--ink)", padding: "6px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--soft)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line-active)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection) !important", color: "inherit !important" },
  // The underlines that come with the package are pictures, which the page's policy does not load.
  ".cm-lintRange": { backgroundImage: "none", paddingBottom: "0" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--accent)", textUnderlineOffset: "3px" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px", backgroundColor: "var(--bad-back)" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--bad)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--rule)", borderRadius: "4px" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: "1em" },
  ".cm-completionIcon": { display: "none" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--sans)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", borderColor: "var(--rule)", fontFamily: "var(--sans)" },
  ".cm-panel.cm-search": { padding: "6px 28px 6px 8px" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button, .cm-panel.cm-search label": { fontSize: "13px", margin: "2px 6px 2px 0", borderRadius: "4px", padding: "2px 8px" },
  ".cm-panel.cm-search [name=close]": { fontSize: "18px", margin: "2px", padding: "0 6px" },
  ".cm-textfield": { backgroundColor: "var(--field)", color: "var(--ink)", border: "1px solid var(--rule)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--field)", color: "var(--ink)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selection)" },
  ".cm-specialChar": { color: "var(--bad)" },
});

/** What shows that someone is at the editor, or has left it. */
const TAKING = ["keydown", "pointerdown", "input", "paste", "focusout"];

/** Milliseconds after the last key until the text is looked at. */
const PAUSE = 600;

interface Options {
  text: string;
  /** Says what is wrong with a text; `undefined`: nothing, or it is unknown. */
  check: (text: string) => Promise<Problem | undefined>;
  run: () => void;
  /** The text laid out. */
  format: (text: string) => string;
  changed: (text: string) => void;
}

export class Editor {
  readonly element = document.createElement("div");
  private view: EditorView;
  /** Counts looks for faults: an answer to an older one comes too late. */
  private looks = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private options: Options) {
    this.element.className = "editor";
    // A class, since :focus-within makes Chromium slow where a long line is replaced.
    for (const type of ["focusin", "focusout"]) this.element.addEventListener(type, () => this.element.classList.toggle("focused", type === "focusin"));
    const root = this.element.attachShadow({ mode: "open" });
    const run = () => {
      options.run();
      return true;
    };
    this.view = new EditorView({
      parent: root as unknown as Element,
      root,
      state: EditorState.create({
        doc: options.text,
        extensions: [
          lineNumbers(), history(), drawSelection(), highlightSpecialChars(), highlightActiveLine(), bracketMatching(), closeBrackets(),
          highlightSelectionMatches(), search({ top: true }), replaceSelection, EditorView.lineWrapping, theme, syntaxHighlighting(colours),
          new LanguageSupport(language, language.data.of({ commentTokens: { line: "#" } })),
          autocompletion({ override: [complete], activateOnTypingDelay: 80, maxRenderedOptions: 60 }),
          Prec.highest(keymap.of([{ key: "Ctrl-Enter", mac: "Cmd-Enter", run }, { key: "Ctrl-Enter", run }, { key: "Ctrl-Shift-f", run: () => this.format() }, { key: "Ctrl-Shift-F", run: () => this.format() }, { key: "Tab", run: acceptCompletion }])),
          keymap.of([
            ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap,
            { key: "F8", run: nextDiagnostic },
            // Tab indents; Escape and then Tab leaves the editor, for who has no mouse.
            { key: "Escape", run: temporarilySetTabFocusMode },
            indentWithTab,
          ]),
          EditorView.contentAttributes.of({ "aria-label": "SPARQL query or update. Escape and then Tab leaves the editor.", spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
          EditorView.updateListener.of((update) => this.updated(update)),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** Lays the text out; undone by one step. */
  format(): boolean {
    const made = this.options.format(this.text);
    if (made !== this.text) {
      // The cursor stays at the same place among what is no space.
      const solid = this.text.slice(0, this.view.state.selection.main.head).replace(/\s/g, "").length;
      let at = 0;
      for (let seen = 0; at < made.length && seen < solid; at++) if (!/\s/.test(made.charAt(at))) seen++;
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: made }, selection: { anchor: at }, scrollIntoView: true, userEvent: "format" });
    }
    this.view.focus();
    return true;
  }

  focus(): void {
    this.view.focus();
  }

  /** Scrolls to where the query itself begins, behind its declarations: an editor that is low shows that. */
  showBeginning(): void {
    const { doc } = this.view.state;
    let first = 1;
    while (first < Math.min(doc.lines, 1000) && /^\s*(?:$|#|(?:prefix|base)\b)/i.test(doc.line(first).text.slice(0, 200))) first++;
    this.view.dispatch({ effects: EditorView.scrollIntoView(doc.line(first).from, { y: "start", yMargin: 0 }) });
  }

  /** Gets the focus from the page: until someone writes or points here, the page's own keys hold. */
  offer(): void {
    this.focus();
    this.element.dataset["offered"] = "";
    const taken = () => {
      delete this.element.dataset["offered"];
      for (const type of TAKING) this.element.removeEventListener(type, taken);
    };
    for (const type of TAKING) this.element.addEventListener(type, taken);
  }

  private updated(update: ViewUpdate): void {
    if (!update.docChanged) return;
    this.options.changed(this.text);
    // What was wrong where someone wrote may be right now.
    const left: Diagnostic[] = [];
    let touched = false;
    forEachDiagnostic(update.startState, (d, from, to) => {
      if (update.changes.touchesRange(from, to)) touched = true;
      else left.push({ ...d, from: update.changes.mapPos(from, 1), to: update.changes.mapPos(to, -1) });
    });
    // The view is in the middle of its update.
    if (touched) queueMicrotask(() => this.view.dispatch(setDiagnostics(this.view.state, left)));
    if (update.transactions.some((t) => t.isUserEvent("input.type"))) queueMicrotask(() => this.declare());
    clearTimeout(this.timer);
    if (update.transactions.some((t) => t.isUserEvent("input") || t.isUserEvent("delete"))) this.timer = setTimeout(() => void this.check(), PAUSE);
  }

  /** Underlines what is wrong already, but where someone still writes. */
  private async check(): Promise<void> {
    const { text } = this;
    const look = ++this.looks;
    const problem = await this.options.check(text);
    if (text !== this.text || look !== this.looks) return;
    const at = this.view.state.selection.main.head;
    const faults = (problem?.faults ?? []).filter((f) => unitAt(text, f.start) > at + 1 || unitAt(text, f.end) < at);
    this.underline(problem && faults.length > 0 ? { ...problem, faults } : undefined);
  }

  /** After the colon of a common prefix that is not declared, puts its declaration on top. */
  private declare(): void {
    const { state } = this.view;
    const at = state.selection.main.head;
    const line = state.doc.lineAt(at);
    const found = /(?:^|[\s{(.;,|/^!])([A-Za-z][\w.-]*):$/.exec(line.text.slice(0, at - line.from));
    const name = found?.[1];
    if (name === undefined || /prefix\s+[\w.-]*:$/i.test(line.text.slice(0, at - line.from))) return;
    const iri = prefixes.all.get(name);
    const text = this.text;
    if (iri === undefined || declared(text).some(([known]) => known === name) || !isCode(text, at)) return;
    const { at: where, insert } = declaration(text, name, iri);
    this.view.dispatch({ changes: { from: where, insert }, userEvent: "input.complete" });
  }

  /** Underlines what the server's parser says is wrong. */
  underline(problem: Problem | undefined): void {
    const { text } = this;
    clearTimeout(this.timer);
    this.looks++;
    const found: Diagnostic[] = [];
    for (const fault of problem?.faults ?? []) {
      const from = Math.min(unitAt(text, fault.start), text.length);
      const to = Math.max(from, Math.min(unitAt(text, fault.end), text.length));
      found.push({ from, to, severity: problem?.kind === "empty" ? "warning" : "error", message: [fault.message, ...hints(fault)].join("\n"), actions: this.actions(fault) });
    }
    if (problem && found.length === 0 && problem.line !== undefined) {
      const from = unitOf(text, problem.line, problem.column ?? 1);
      found.push({ from, to: Math.min(from + 1, text.length), severity: "error", message: problem.detail });
    }
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }

  private actions(fault: Fault): NonNullable<Diagnostic["actions"]> {
    return fault.suggestions.flatMap(({ replacement }) => {
      if (!replacement) return [];
      const act = { name: "Apply", apply: () => this.replace(replacement) };
      return [act];
    });
  }

  /** Does what the server suggests. */
  replace({ start, end, with: insert }: { start: number; end: number; with: string }): void {
    const { text } = this;
    this.view.dispatch({ changes: { from: unitAt(text, start), to: unitAt(text, end), insert }, userEvent: "input.complete" });
  }

  /** Puts the cursor to a fault. */
  goTo(fault: Fault): void {
    this.view.dispatch({ selection: { anchor: Math.min(unitAt(this.text, fault.start), this.text.length) }, scrollIntoView: true });
    this.view.focus();
  }
}

function hints(fault: Fault): string[] {
  return fault.suggestions.map((s) => s.text);
}
