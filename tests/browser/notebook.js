// Opens the outputs of a notebook in Chromium, as one page: node notebook.js PAGE [SCREENSHOT]
// Prints the text of each frame as JSON. Exits with 1 if the page breaks a rule.

import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import * as checks from "./checks.js";

const [file, shot] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"], timeout: 300_000 });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const seen = checks.watch(page, url);
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  if (shot) await page.screenshot({ path: shot, fullPage: true });
  const broken = [
    ...(await checks.overflow(page)), ...(await checks.cut(page)), ...(await checks.overlaps(page)),
    ...seen.console, ...seen.foreign.filter((one) => one !== "about:srcdoc"),
  ];
  broken.forEach((line) => console.error(line));
  // Frames that run no script are read as well.
  const texts = await Promise.all(page.frames().map((frame) => frame.locator("body").innerText()));
  console.log(JSON.stringify(texts));
  process.exitCode = broken.length === 0 ? 0 : 1;
} finally {
  await browser.close();
}
