// Builds the page into crates/jindou-server/src/page, where the server's crate includes it.
//   node build.mjs           writes the bundle
//   node build.mjs --check   fails if the committed bundle is not what the sources give, or is too large
//   node build.mjs --tests   bundles the unit tests into build/tests
import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../crates/jindou-server/src/page");
/** Most bytes of everything that a visit fetches, compressed. */
const MOST = 260_000;

/** The prefixes that the parser knows, from its own source: there is one list. */
const prefixes = {
  name: "prefixes",
  setup(b) {
    b.onResolve({ filter: /^jindou:prefixes$/ }, () => ({ path: "prefixes", namespace: "jindou" }));
    b.onLoad({ filter: /.*/, namespace: "jindou" }, async () => {
      const source = await readFile(join(here, "../crates/jindou-syntax/src/prefixes.rs"), "utf8");
      const list = /COMMON_PREFIXES: &\[\(&str, &str\)\] = &\[([\s\S]*?)\n\];/.exec(source);
      if (!list) throw new Error("prefixes.rs has no COMMON_PREFIXES that can be read");
      const pairs = [...list[1].matchAll(/\("([^"]*)",\s*"([^"]*)"\)/g)].map((m) => [m[1], m[2]]);
      if (pairs.length < 30) throw new Error(`prefixes.rs has only ${pairs.length} prefixes`);
      return { contents: `export const COMMON_PREFIXES = ${JSON.stringify(pairs)};`, loader: "js" };
    });
  },
};

/** The names of SPARQL's functions, from their reference, which a test compares with their definitions: there is one list. */
const functions = {
  name: "functions",
  setup(b) {
    b.onResolve({ filter: /^jindou:functions$/ }, () => ({ path: "functions", namespace: "jindou-functions" }));
    b.onLoad({ filter: /.*/, namespace: "jindou-functions" }, async () => {
      const reference = await readFile(join(here, "../docs/functions.md"), "utf8");
      const names = [...reference.matchAll(/^### (.+)$/gm)].flatMap(([, heading]) => heading.split(", "));
      const odd = names.filter((name) => !/^[A-Za-z][A-Za-z0-9_]*$/.test(name));
      if (names.length < 50 || odd.length > 0) throw new Error(`functions.md has ${names.length} functions, and headings that are none: ${odd.join(", ")}`);
      return { contents: `export const FUNCTIONS = ${JSON.stringify(names.join(" "))}.split(" ");`, loader: "js" };
    });
  },
};

/** The demo's data, for a store that has none. */
const demo = {
  name: "demo",
  setup(b) {
    b.onResolve({ filter: /^jindou:demo$/ }, () => ({ path: "demo", namespace: "jindou-demo" }));
    b.onLoad({ filter: /.*/, namespace: "jindou-demo" }, async () => {
      const folder = join(here, "../demo/data");
      const names = (await readdir(folder)).sort();
      const files = await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")]));
      return { contents: `export const DEMO = ${JSON.stringify(files)};`, loader: "js" };
    });
  },
};

/** Grid cells of the package's coordinates that one of the bundle's has, in each direction: some 30 km. */
const CELLS = [80, 160];

/**
 * Coastlines as one text, less than half as long when compressed: for each line the differences between its points, rounded to a grid,
 * in digits of base 46, the last of which are below 46. A space ends a line. `src/answer/coast.ts` reads it.
 */
const coast = {
  name: "coast",
  setup(b) {
    b.onLoad({ filter: /land-110m\.json$/ }, async ({ path }) => {
      const { transform, arcs } = JSON.parse(await readFile(path, "utf8"));
      const digits = (n) => {
        let left = n < 0 ? -2 * n - 1 : 2 * n;
        let text = "";
        for (; left >= 46; left = Math.floor(left / 46)) text += String.fromCharCode(80 + (left % 46));
        return text + String.fromCharCode(33 + left);
      };
      const lines = arcs.map((arc) => {
        let [at, before] = [[0, 0], [0, 0]];
        return arc.map((step) => {
          at = at.map((n, i) => n + step[i]);
          const now = at.map((n, i) => Math.round(n / CELLS[i]));
          const text = now.map((n, i) => digits(n - before[i])).join("");
          before = now;
          return text;
        }).join("");
      });
      const scale = transform.scale.map((n, i) => n * CELLS[i]);
      return { contents: `export default ${JSON.stringify({ scale, translate: transform.translate, lines: lines.join(" ") })};`, loader: "js" };
    });
  },
};

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  plugins: [prefixes, functions, demo, coast],
};

/** The licences of what is in bundles: each text once, after the names of its packages and who wrote them. */
async function licences(metafiles) {
  const packages = new Set();
  for (const path of metafiles.flatMap((metafile) => Object.keys(metafile.inputs))) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (found) packages.add(found[1]);
  }
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    if (!["MIT", "ISC", "BSD-3-Clause", "Apache-2.0"].includes(about.license)) {
      throw new Error(`${name} has the licence ${about.license}`);
    }
    const file = (await readdir(folder)).find((f) => /^licen[cs]e/i.test(f));
    if (!file) throw new Error(`${name} comes without its licence's text`);
    const lines = (await readFile(join(folder, file), "utf8")).replace(/\r/g, "").trim().split("\n");
    const isHead = (line) => /^Copyright |^MIT License$/.test(line);
    const body = lines.filter((line) => !isHead(line)).join(" ").replace(/\s+/g, " ").trim();
    const owners = lines.filter((line) => line.startsWith("Copyright ")).join(", ");
    texts.set(body, [...(texts.get(body) ?? []), `${name} ${about.version}: ${owners}`]);
  }
  const parts = [...texts].map(([body, names]) => `${names.join("\n")}\n\n${body}\n`);
  return `/*\n${parts.join("\n---\n\n").replaceAll("*/", "* /")}*/\n`;
}

async function bundle(entry) {
  const made = await build({ ...common, entryPoints: [entry], outfile: "build/out.js" });
  return { text: `${made.outputFiles[0].text.trimEnd()}\n`, metafile: made.metafile };
}

async function style() {
  const made = await build({ ...common, entryPoints: ["src/page.css"], outfile: "build/out.css", format: undefined });
  return made.outputFiles[0].text;
}

async function files() {
  const [page, worker, css] = await Promise.all([bundle("src/main.ts"), bundle("src/answer/worker.ts"), style()]);
  const [html, icon] = await Promise.all(["page.html", "icon.svg"].map((name) => readFile(join(here, "src", name), "utf8")));
  const notice = await licences([page.metafile, worker.metafile]);
  return { "page.js": page.text + notice, "worker.js": worker.text, "page.css": css, "page.html": html, "icon.svg": icon };
}

async function tests() {
  const folder = join(here, "test");
  const entries = (await readdir(folder)).filter((f) => f.endsWith(".test.ts")).map((f) => join("test", f));
  const out = join(here, "build/tests");
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await build({
    ...common, entryPoints: entries, outdir: "build/tests", minify: false, write: true,
    format: "esm", platform: "node", outExtension: { ".js": ".mjs" }, target: "node20", sourcemap: "inline",
  });
}

if (process.argv.includes("--tests")) {
  await tests();
} else {
  const made = await files();
  let size = 0;
  for (const text of Object.values(made)) size += gzipSync(text, { level: 9 }).length;
  if (process.argv.includes("--check")) {
    for (const [name, text] of Object.entries(made)) {
      if ((await readFile(join(target, name), "utf8").catch(() => "")) !== text) {
        console.error(`page: crates/jindou-server/src/page/${name} is not what web/ builds: run 'npm run build' in web/`);
        process.exitCode = 1;
      }
    }
  } else {
    for (const [name, text] of Object.entries(made)) await writeFile(join(target, name), text);
  }
  console.log(`page: ${size.toLocaleString("en")} bytes compressed, of ${MOST.toLocaleString("en")} at most`);
  if (size > MOST) process.exitCode = 1;
}
