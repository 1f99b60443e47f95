// Opens every page of lookalike in Chromium: wide and at 360 px, light and dark.
// node run.js BINARY [SCREENSHOTS]

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

import * as checks from "./checks.js";
import { tryService, tryTables } from "./hands.js";
import { makePages, startService } from "./pages.js";
import { brokenPages } from "./broken.js";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
// axe takes longest. In dark mode only colours differ, and they do not depend on the width.
const ALL = undefined;
const NONE = [];
const VIEWS = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 900 }, axe: ALL, acts: true },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 900 }, axe: ["color-contrast"] },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 740 }, axe: ALL, acts: true },
  { name: "phone-dark", colorScheme: "dark", viewport: { width: 360, height: 740 }, axe: NONE },
];

/** Milliseconds that a busy machine may take to start the browser or to open a page. */
const PATIENCE = 300_000;

const [binary, shots] = process.argv.slice(2);
if (!binary) {
  console.error("usage: node run.js BINARY [SCREENSHOTS]");
  process.exit(2);
}

let passed = 0;
let failed = 0;

/** Counts a rule that was kept, or prints how it was broken. */
function law(name, broken) {
  if (broken.length === 0) {
    passed += 1;
    return;
  }
  failed += 1;
  console.log(`FAILED ${name}`);
  for (const line of broken) console.log(`    ${line}`);
}

/** Returns every rule for a page, by name, with its violations. */
async function judge(page, seen, says, view) {
  return {
    "text is inert": await checks.alive(page),
    "the page does not scroll sideways": await checks.overflow(page),
    "no text is cut": await checks.cut(page),
    "no label lies over another": await checks.overlaps(page),
    "it says what it must": await checks.unsaid(page, says),
    "axe finds nothing": view.axe === NONE ? [] : await checks.axe(page, view.axe),
    "nothing on the console": seen.console.splice(0),
    "nothing is fetched from elsewhere": seen.foreign.splice(0),
  };
}

/** Opens a page, uses its controls, and checks it in each view: everything closed for the screenshot, and then open. */
async function visit(browser, { name, url, says = [], act }, views, tell) {
  const context = await browser.newContext({ colorScheme: views[0].colorScheme, viewport: views[0].viewport });
  await context.route(/^https?:\/\/(?!127\.0\.0\.1)/, (route) => route.abort());
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const seen = checks.watch(page, url);
  try {
    await page.goto(url, { waitUntil: "load" });
    for (const view of views) {
      await page.emulateMedia({ colorScheme: view.colorScheme });
      await page.setViewportSize(view.viewport);
      await unfold(page, false);
      tell(view, { "its controls work": act && view.acts ? await act(page) : [] });
      await unfold(page, false);
      if (shots && name) await page.screenshot({ path: join(shots, `${name}-${view.name}.png`), fullPage: true });
      await unfold(page, true);
      tell(view, await judge(page, seen, says, view));
    }
  } finally {
    await context.close();
  }
}

function unfold(page, open) {
  return page.evaluate((wanted) => document.querySelectorAll("details").forEach((one) => { one.open = wanted; }), open);
}

/** Checks the checks: for each rule there is a page that breaks it, so that no check passes blindly. */
async function checkTheChecks(browser, dir) {
  for (const { name, breaks, page } of brokenPages(dir)) {
    const found = [];
    await visit(browser, page, [VIEWS[0]], (_, laws) => {
      found.push(...Object.keys(laws).filter((one) => laws[one].length > 0));
    });
    law(`the checks see ${name}`, found.includes(breaks) ? [] : [`"${breaks}" held; broken was: ${found.join(", ") || "nothing"}`]);
  }
}

/** Visits two pages at a time. */
async function visitAll(browser, pages) {
  const waiting = pages.slice();
  const work = async () => {
    for (let page = waiting.shift(); page; page = waiting.shift()) {
      await visit(browser, page, VIEWS, (view, laws) => {
        for (const [one, broken] of Object.entries(laws)) law(`${page.name}, ${view.name}: ${one}`, broken);
      });
    }
  };
  await Promise.all([work(), work()]);
}

const dir = mkdtempSync(join(tmpdir(), "lookalike-browser-"));
if (shots) mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS, timeout: PATIENCE });
let service;
try {
  await checkTheChecks(browser, dir);
  const pages = makePages(binary, join(dir, "pages")).map((page) => ({ ...page, act: tryTables }));
  service = await startService(binary, dir);
  await visitAll(browser, [...pages, { name: "service", url: service.url, act: tryService }]);
} finally {
  service?.stop();
  await browser.close();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
