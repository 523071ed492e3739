// The page's beginning: its views, and which one the address names.

// First: the colours are to be right before anything is seen.
import "./theme.ts";
import { byId, h } from "./dom.ts";
import { askForTokenBy, setToken, token, type Problem } from "./net/http.ts";
import { listen } from "./events.ts";
import { forgetLabels } from "./labels.ts";
import { dialog, labelsChanged, queryHash } from "./show.ts";
import { data, stale } from "./state.ts";
import { entitle, ofStore } from "./title.ts";
import { BlankView } from "./views/blank-node.ts";
import { DataView } from "./views/data.ts";
import { keysByKey } from "./views/keys.ts";
import { dropAnywhere } from "./views/load.ts";
import { QueryView } from "./views/query.ts";
import { ResourceView } from "./views/resource.ts";
import { SearchBox } from "./views/search-box.ts";
import { ServerView } from "./views/server.ts";
import { switches } from "./views/switches.ts";
import type { View } from "./views/view.ts";

const fallback = new QueryView();
const views = new Map<string, View>([["query", fallback], ["data", new DataView()], ["server", new ServerView()], ["resource", new ResourceView()], ["blank", new BlankView()]]);

let shown: View | undefined;

function route(): void {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const name = views.has(path) ? path : "query";
  const view = views.get(name) ?? fallback;
  if (shown !== view) {
    shown?.hide();
    byId("main").replaceChildren(view.element);
    shown = view;
  }
  view.show(new URLSearchParams(search));
  entitle(view.title);
  for (const link of document.querySelectorAll<HTMLAnchorElement>("nav a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Asks for a token, once at a time however many requests want one. */
let asking: Promise<boolean> | undefined;

function askForToken(problem: Problem): Promise<boolean> {
  asking ??= new Promise<boolean>((resolve) => {
    const field = h("input", { id: "token", attrs: { type: "password", autocomplete: "off", required: true } });
    const form = h(
      "form", { attrs: { method: "dialog" } },
      h("p", {}, problem.detail),
      h("p", {}, h("label", {}, "Token ", field)),
      h("p", {}, h("button", { class: "primary", attrs: { type: "submit" } }, "Use token")),
      h("p", { class: "soft" }, "It is kept until this tab is closed."),
    );
    let given = false;
    form.addEventListener("submit", () => {
      given = field.value !== "";
      if (given) setToken(field.value.trim());
    });
    dialog("Enter a token", form).addEventListener("close", () => {
      asking = undefined;
      if (given) stale();
      forget();
      resolve(given);
    });
    field.focus();
  });
  return asking;
}

/** A way to give a token back, while there is one. */
function forget(): void {
  const place = byId("token-place");
  place.replaceChildren();
  if (token() === undefined) return;
  const drop = h("button", { attrs: { type: "button" } }, "Forget token");
  drop.addEventListener("click", () => {
    setToken("");
    stale();
    forget();
  });
  place.append(drop);
}

/** The choice of graphs is seen once the data is known. */
function choices(): void {
  byId("switch-place").replaceChildren(switches());
}

/** The choice of graphs and the store's name, which come with the first answer. */
async function described(): Promise<void> {
  ofStore((await data())?.name ?? "");
  choices();
}

askForTokenBy(askForToken);
byId("main").replaceChildren();
byId("nav").hidden = false;
byId("search-place").replaceChildren(new SearchBox().element);
addEventListener("hashchange", route);
addEventListener("popstate", route);
dropAnywhere();
keysByKey();
listen("graphs", () => {
  choices();
  shown?.refresh?.();
});
listen("data", () => {
  forgetLabels();
  void described();
  shown?.refresh?.();
});
listen("labels", labelsChanged);
forget();
choices();
// A browser that was led to the endpoint with a query gets the page, and the page the query.
const brought = new URLSearchParams(location.search).get("query");
if (brought !== null) history.replaceState(null, "", `./${queryHash(brought)}`);
// Short names for the data's own vocabulary, and which graphs are read, are known when the first answer comes.
void described();
route();
