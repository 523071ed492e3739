// The prefixes of the data: a list, and where the server takes changes an editor.

import { button, failure, h } from "../dom.ts";
import { tell } from "../events.ts";
import { counted } from "../format.ts";
import { dropPrefix, loadPrefixes, ownPrefixes, setPrefix } from "../net/prefixes.ts";
import { problemIn } from "../net/upload.ts";
import { visible } from "../rdf/term.ts";
import { prefixes } from "../show.ts";

/** Prefixes that are listed. */
const MOST = 1000;
/** Where a prefix comes from that no query may use without declaring it. */
const MADE = "made up by this page";

export class PrefixList {
  readonly element = h("div", { class: "prefixes" });
  private said = h("div", { attrs: { "aria-live": "polite" } });

  async show(writable: boolean): Promise<void> {
    const own = ownPrefixes();
    // Without the server's list there are the prefixes that this page knows and made up.
    const all = own?.map((p): [string, string, string] => [p.prefix, p.iri, p.from === "set" ? "set here" : "from the data"]) ?? [...prefixes.all].map(([name, iri]): [string, string, string] => [name, iri, "known to this page"]);
    if (own) for (const [name, iri] of prefixes.all) if (prefixes.isMade(name) && all.length < MOST) all.push([name, iri, MADE]);
    const editable = writable && own !== undefined;
    const rows = all.sort(([a], [b]) => a.localeCompare(b)).map(([name, iri, from]) => h(
      "tr", {}, h("th", { attrs: { scope: "row" } }, h("code", {}, `${visible(name)}:`)), h("td", { class: "what" }, h("code", { attrs: { dir: "ltr" } }, visible(iri))), h("td", { class: "soft" }, from),
      h("td", {}, editable && from !== MADE ? button("Remove", () => void this.change(() => dropPrefix(name), writable), { attrs: { "aria-label": `Remove ${name}:` } }) : null),
    ));
    const open = this.element.querySelector("details")?.open ?? false;
    const heads = ["Prefix", "IRI", "From"].map((t) => h("th", { attrs: { scope: "col" } }, t));
    this.element.replaceChildren(
      h("h2", {}, "Prefixes"),
      h("details", { attrs: { open } }, h("summary", {}, own ? counted(own.length, "prefix of the data", "prefixes of the data") : counted(all.length, "prefix", "prefixes")),
        h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": "Prefixes" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("td"))), h("tbody", {}, ...rows))),
        editable ? this.form(writable) : null, this.said),
    );
  }

  private form(writable: boolean): HTMLElement {
    const name = h("input", { attrs: { type: "text", size: 8, placeholder: "ex", "aria-label": "Prefix", spellcheck: "false", pattern: "[A-Za-z][A-Za-z0-9._\\-]*" } });
    const iri = h("input", { attrs: { type: "text", size: 40, placeholder: "http://example.org/", "aria-label": "IRI of the prefix", spellcheck: "false", required: true } });
    const form = h("form", { class: "tools" }, name, ": ", iri, " ", h("button", { attrs: { type: "submit" } }, "Set prefix"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.change(() => setPrefix(name.value.trim().replace(/:$/, ""), iri.value.trim().replace(/^<|>$/g, "")), writable);
    });
    return form;
  }

  private async change(act: () => Promise<void>, writable: boolean): Promise<void> {
    try {
      await act();
      await loadPrefixes();
      this.said.replaceChildren();
      await this.show(writable);
      tell("prefixes");
    } catch (error) {
      this.said.replaceChildren(failure(problemIn(error).detail));
    }
  }
}
