// The page's colours: the system's, or what someone chose.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, long, run, serve, shot, visit } from "./setup.mjs";

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const choice = (page) => page.getByLabel("Theme");
/** The lightness, from 0 to 255, of what is behind the page, the editor and a field of the browser's own. */
const backs = (page) =>
  page.evaluate(() => {
    const light = (element) => Number(/\d+/.exec(getComputedStyle(element).backgroundColor)[0]);
    return [document.body, document.querySelector(".editor").shadowRoot.querySelector(".cm-editor"), document.querySelector("#search-place input")].map(light);
  });
const isDark = async (page, dark) => {
  const all = await backs(page);
  assert.ok(all.every((n) => (dark ? n < 60 : n > 230)), `${all} for ${dark ? "dark" : "light"}`);
  // Scrollbars and fields of the browser's own go along.
  const value = await choice(page).inputValue();
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), value === "system" ? "light dark" : value);
};

test("the theme follows the system until one is chosen, is kept, and holds in every tab", async () => {
  const { page, faults, close } = await visit(address, { colorScheme: "light" });
  await isDark(page, false);
  await page.emulateMedia({ colorScheme: "dark" });
  await isDark(page, true);
  await choice(page).selectOption("light");
  await isDark(page, false);
  await page.emulateMedia({ colorScheme: "light" });
  await choice(page).selectOption("dark");
  await isDark(page, true);
  // Loaded again, it is there before the first view is.
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector("main > section")) return;
      globalThis.themeAtFirst = document.documentElement.dataset.theme;
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  await page.waitForFunction(() => globalThis.themeAtFirst === "dark");
  assert.equal(await choice(page).inputValue(), "dark");
  await isDark(page, true);
  const other = await page.context().newPage();
  await other.goto(address);
  await choice(other).selectOption("system");
  await page.waitForFunction(() => document.documentElement.dataset.theme === undefined);
  assert.equal(await choice(page).inputValue(), "system");
  await isDark(page, false);
  assert.equal(await page.evaluate(() => localStorage.getItem("jindou-theme")), null);
  assert.deepEqual(faults, []);
  await close();
});

test("for everybody: no finding of axe in a theme that is not the system's; a phone's width", async () => {
  for (const [system, chosen] of long ? [["light", "dark"], ["dark", "light"]] : [["light", "dark"]]) {
    const { page, faults, close } = await visit(address, { colorScheme: system, viewport: { width: 375, height: 740 } });
    // On a phone the switches stand behind one button.
    await page.getByRole("button", { name: "Settings" }).click();
    await choice(page).selectOption(chosen);
    await page.keyboard.press("Escape");
    const look = async (name) => {
      assert.deepEqual(await audit(page), [], `${name}, ${chosen} on ${system}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name} is ${over} pixels too wide`);
      await shot(page, `theme-${name}-${chosen}`);
    };
    await page.locator(".examples button").first().waitFor();
    await look("start");
    await run(page, "SELECT * { ?s ?p ?o } LIMIT 50");
    await look("query");
    await run(page, "SELECT * { ?s nope:x }");
    await page.locator(".cm-lintRange-error").first().waitFor();
    await look("wrong");
    await page.goto(`${address}#/data`);
    await page.getByRole("button", { name: "Remove http://example.org/systems/Mars", exact: true }).click();
    await page.getByRole("dialog").waitFor();
    await look("remove");
    assert.deepEqual(faults, []);
    await close();
  }
});
