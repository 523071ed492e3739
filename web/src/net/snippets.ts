// A query as a command, and as a program.

/** For a POSIX shell: in single quotes nothing has a meaning but the quote. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

interface About {
  hasToken: boolean;
  isUpdate: boolean;
}

export function curl(endpoint: string, text: string, { hasToken, isUpdate }: About): string {
  const parts = ["curl", quoted(endpoint)];
  // The token stays out of what may be pasted anywhere.
  if (hasToken) parts.push("-H", `"Authorization: Bearer $JINDOU_TOKEN"`);
  if (!isUpdate) parts.push("-H", quoted("Accept: text/tab-separated-values"));
  parts.push("-H", quoted(`Content-Type: application/sparql-${isUpdate ? "update" : "query"}`));
  parts.push("--data-binary", quoted(text.startsWith("@") ? ` ${text}` : text));
  return parts.join(" ");
}

export function python(endpoint: string, text: string, { hasToken, isUpdate }: About): string {
  const lines = isUpdate ? [] : ["import csv", "import io"];
  if (hasToken) lines.push("import os");
  lines.push("import urllib.request", "");
  lines.push(`query = ${pythonText(text)}`, "");
  lines.push("request = urllib.request.Request(", `    ${pythonText(endpoint)},`, "    data=query.encode(),", "    headers={");
  lines.push(`        "Content-Type": "application/sparql-${isUpdate ? "update" : "query"}",`);
  if (!isUpdate) lines.push(`        "Accept": "text/csv",`);
  if (hasToken) lines.push(`        "Authorization": "Bearer " + os.environ["JINDOU_TOKEN"],`);
  lines.push("    },", ")", "with urllib.request.urlopen(request) as answer:");
  if (isUpdate) lines.push("    print(answer.read().decode())", "");
  else {
    lines.push(`    rows = csv.reader(io.TextIOWrapper(answer, encoding="utf-8", newline=""))`);
    lines.push("    for row in rows:", "        print(row)", "");
  }
  return lines.join("\n");
}

/** Python's text: JSON's escapes are Python's too, but for characters beyond the BMP, which stand as they are. */
function pythonText(text: string): string {
  if (text.includes("\n")) {
    const body = text.replaceAll("\\", "\\\\").replace(/"{2,}|"$/g, (quotes) => '\\"'.repeat(quotes.length)).replace(/[\r\0]/g, (c) => (c === "\r" ? "\\r" : "\\x00"));
    return `"""${body}"""`;
  }
  return JSON.stringify(text);
}
