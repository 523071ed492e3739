// A server with data of its own, and a browser in front of it.
//   JINDOU_BIN       the program (else the newest of target/{release,ci,debug}/jindou)
//   JINDOU_CHROMIUM  the browser (else chromium-headless-shell, chromium, chromium-browser or google-chrome on the path)
//   JINDOU_SOURCES   if set, the page is what lies in crates/jindou-server/src/page, whatever the program has in it
//   JINDOU_SHOTS     a folder for pictures
//   JINDOU_LONG      if set, a million rows, and every view in every width and colour
import { chromium } from "playwright-core";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { proxy } from "../dev.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

function program() {
  if (process.env.JINDOU_BIN) return process.env.JINDOU_BIN;
  const built = ["release", "ci", "debug"].map((p) => join(root, "target", p, "jindou")).filter((p) => existsSync(p));
  built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (!built[0]) throw new Error("there is no jindou: build it, or name it in JINDOU_BIN");
  return built[0];
}

function browserPath() {
  if (process.env.JINDOU_CHROMIUM) return process.env.JINDOU_CHROMIUM;
  for (const name of ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]) {
    const found = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
    if (found) return found;
  }
  throw new Error("there is no Chromium: apt-get install chromium, or name one in JINDOU_CHROMIUM");
}

export const demo = ["agencies.nt", "missions.jsonld", "moons.trig", "people.rdf", "planets.ttl"].map((f) => join(root, "demo/data", f));

/** True if there is time for everything. */
export const long = Boolean(process.env.JINDOU_LONG);

/** A folder that goes when the tests end. */
export const folder = mkdtempSync(join(tmpdir(), "jindou-page-"));
const running = [];

/** Loads files or texts (Turtle) and serves them; `empty`: a store that the server makes itself. */
export async function serve({ files = [], turtle, empty = false, options = ["--writable"] }) {
  const store = mkdtempSync(join(folder, "store-"));
  if (turtle !== undefined) {
    const file = join(store, "data.ttl");
    writeFileSync(file, turtle);
    files = [...files, file];
  }
  if (!empty) execFileSync(program(), ["load", "--store", join(store, "s"), ...files], { stdio: "pipe" });
  const child = spawn(program(), ["serve", "--store", join(store, "s"), "--port", "0", "--log-level", "error", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  const address = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
      const found = /http:\/\/[^\s/]+/.exec(said);
      if (found) resolve(found[0].replace("localhost", "127.0.0.1"));
    });
    child.on("exit", (code) => reject(new Error(`jindou serve ended with ${code}: ${said}`)));
  });
  servers.set(`${address}/`, child);
  if (!process.env.JINDOU_SOURCES) return `${address}/`;
  const front = await proxy(0, address);
  running.push({ kill: front.close });
  servers.set(front.address, child);
  return front.address;
}

const servers = new Map();

/** Ends the server of an address, and waits for that. */
export async function stop(address) {
  const child = servers.get(address);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
}

let browser;

/**
 * A page of its own. `faults` collects what must not be: errors of scripts, and what the policy refused; `sent`, requests to other
 * places than its own server.
 */
export async function visit(address, { hash = "", ...options } = {}) {
  browser ??= await chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    // The browser itself says so of every answer that is an error.
    const said = message.text();
    if (message.type() === "error" && !/Failed to load resource: the server responded|Content Security Policy/.test(said)) faults.push(said);
  });
  await page.exposeFunction("refused", (what) => faults.push(what));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      // Who types over highlighted text makes the browser itself want a style for it; the editor draws it again anyway.
      // The editor's own attempts: at its element, or at the document once a closed tab's editor has left it.
      if (event.effectiveDirective === "style-src-attr" && (event.target === document || event.target.classList?.contains("editor"))) return;
      globalThis.refused(`refused: ${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !/^(blob|data):/.test(request.url())) faults.push(`a request to ${request.url()}`);
  });
  await page.goto(address + hash);
  await page.waitForSelector("main > section");
  return { page, faults, close: () => context.close() };
}

/** Replaces the editor's text by typing nothing: as a paste does. */
export async function write(page, text) {
  await page.locator(".editor").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
  await page.keyboard.press("Escape");
}

/** Runs a query and waits for its end. */
export async function run(page, text) {
  await write(page, text);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await ended(page);
}

export async function ended(page) {
  await page.waitForFunction(() => {
    const run = [...document.querySelectorAll("button")].find((b) => b.textContent === "Run");
    return run && !run.disabled;
  }, undefined, { timeout: 60_000 });
}

/** Sets the time limit of the query. */
export async function limit(page, seconds) {
  await page.locator("summary", { hasText: /^More/ }).click();
  await page.getByLabel("Time limit in seconds").fill(seconds);
  await page.keyboard.press("Escape");
}

/** Waits until a graph lies still, and gives how many nodes and edges it draws. */
export async function drawn(page, least = 1) {
  await page.waitForFunction((n) => {
    const { nodes, settled } = document.querySelector("canvas.graph")?.dataset ?? {};
    return Number(nodes) >= n && settled === "true";
  }, least, { timeout: 60_000 });
  const { nodes, edges } = await page.locator("canvas.graph").evaluate((c) => ({ ...c.dataset }));
  return { nodes: Number(nodes), edges: Number(edges) };
}

/** What a graph's SVG says, as its texts with their boxes. */
export async function exported(page) {
  await page.locator(".graph-box").getByText("Export").click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
  const text = readFileSync(await file.path(), "utf8");
  const texts = [...text.matchAll(/<text x="([-\d.]+)" y="([-\d.]+)" font-size="(\d+)"[^>]*>([^<]*)<\/text>/g)].map(([, x, y, size, said]) => ({ x: Number(x), y: Number(y), size: Number(size), text: said }));
  return { name: file.suggestedFilename(), text, texts };
}

export const statusOf = (page) => page.locator(".status").textContent();

export async function shot(page, name) {
  if (process.env.JINDOU_SHOTS) await page.screenshot({ path: join(process.env.JINDOU_SHOTS, `${name}.png`) });
}

/** Findings of axe, as sentences. */
export async function audit(page) {
  const source = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
  await page.evaluate(source);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")}`);
}

export async function end() {
  await browser?.close();
  // A server writes into its store's folder when it ends.
  const waits = running.map((child) => {
    // A front has no process.
    const runs = child.pid !== undefined && child.exitCode === null && child.signalCode === null;
    return runs ? new Promise((resolve) => child.once("exit", resolve)) : undefined;
  });
  for (const child of running) child.kill();
  await Promise.all(waits);
  rmSync(folder, { recursive: true, force: true });
}
