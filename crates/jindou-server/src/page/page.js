"use strict";

// Answers are put into the page as text only, never as markup.
const MOST_ROWS = 1000;
const byId = (id) => document.getElementById(id);

function shown(term) {
  if (!term) return "";
  switch (term.type) {
    case "uri": return `<${term.value}>`;
    case "bnode": return `_:${term.value}`;
    case "triple":
      return `<<( ${shown(term.value.subject)} ${shown(term.value.predicate)} ${shown(term.value.object)} )>>`;
    default: {
      const text = JSON.stringify(term.value);
      if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
      return term.datatype ? `${text}^^<${term.datatype}>` : text;
    }
  }
}

function element(name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
}

function line(cells, name) {
  const row = element("tr");
  row.append(...cells.map((cell) => element(name, cell)));
  return row;
}

function table(answer) {
  const names = answer.head.vars;
  const rows = answer.results.bindings;
  const made = element("table");
  made.append(line(names.map((name) => `?${name}`), "th"));
  for (const row of rows.slice(0, MOST_ROWS)) {
    made.append(line(names.map((name) => shown(row[name])), "td"));
  }
  const more = rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} are shown` : "";
  return [`${rows.length} row${rows.length === 1 ? "" : "s"}${more}`, made];
}

async function ask() {
  const [status, place] = [byId("status"), byId("answer")];
  status.className = "";
  status.textContent = "…";
  place.replaceChildren();
  try {
    const response = await fetch("sparql", {
      method: "POST",
      headers: {
        "Content-Type": "application/sparql-query",
        "Accept": "application/sparql-results+json, text/turtle;q=0.9",
      },
      body: byId("query").value,
    });
    const type = response.headers.get("Content-Type") || "";
    if (!response.ok) {
      const problem = type.includes("json") ? (await response.json()).detail : await response.text();
      throw new Error(problem || `status ${response.status}`);
    }
    if (!type.startsWith("application/sparql-results+json")) {
      place.append(element("pre", await response.text()));
      status.textContent = "a graph";
      return;
    }
    const answer = await response.json();
    if ("boolean" in answer) {
      status.textContent = String(answer.boolean);
      return;
    }
    const [count, made] = table(answer);
    status.textContent = count;
    place.append(made);
  } catch (error) {
    status.className = "error";
    status.textContent = error.message;
  }
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
