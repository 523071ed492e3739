// Statistics of a column, as a dialog shows them.

import { h } from "../dom.ts";
import { count, counted, number } from "../format.ts";
import { bar } from "../pieces.ts";
import { dialog, termNode } from "../show.ts";
import type { Statistics } from "./protocol.ts";

export function showStatistics(name: string, found: Statistics): void {
  const bound = found.rows - found.unbound;
  const facts: [string, string][] = [
    ["Rows", count(found.rows)], ["With a value", count(bound)], ["Different values", `${found.more ? "at least " : ""}${count(found.distinct)}`],
  ];
  const kinds = ([["IRIs", found.iris], ["literals", found.literals], ["blank nodes", found.blanks]] as [string, number][]).filter(([, n]) => n > 0).map(([kind, n]) => `${count(n)} ${kind}`);
  if (kinds.length > 0) facts.push(["Kinds", kinds.join(", ")]);
  if (found.languages.length > 0) facts.push(["Languages", found.languages.map(([lang, n]) => `${lang} ${count(n)}`).join(", ")]);
  if (found.longest > 0) facts.push(["Longest text", counted(found.longest, "character")]);
  const { numbers } = found;
  if (numbers) facts.push(["Numbers", count(numbers.count)], ["Least", number(numbers.least)], ["Median", number(numbers.median)], ["Mean", number(Number(numbers.mean.toPrecision(12)))], ["Greatest", number(numbers.most)]);
  const most = Math.max(1, ...found.top.map(([, n]) => n));
  const rows = found.top.map(([term, n]) => h("tr", {}, h("td", { class: "what" }, termNode(term, { link: false, most: 80, oneLine: true })), h("td", { class: "n" }, count(n)), h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(n / most))));
  const heads = h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, "Most frequent"), h("th", { class: "n", attrs: { scope: "col" } }, "Rows"), h("td")));
  dialog(
    `Column ${name}`, h("dl", { class: "facts" }, ...facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))),
    rows.length > 0 ? h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Most frequent values" } }, h("table", {}, heads, h("tbody", {}, ...rows))) : h("p", { class: "soft" }, "No row has a value here."),
  );
}
