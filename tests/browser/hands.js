// Uses the controls of a page as a person would, and returns a list of what did not work.

import { NAMES } from "./hostile.js";

/** Searches and sorts each table that has these controls, opens all clusters, and closes them again. */
export async function tryTables(page) {
  const broken = [];
  for (const find of await page.locator("input[type=search]").all()) broken.push(...(await trySearch(page, find)));
  for (const button of await page.locator("thead th button").all()) {
    const head = button.locator("xpath=ancestor::th");
    await button.click();
    const first = await head.getAttribute("aria-sort");
    await button.click();
    const second = await head.getAttribute("aria-sort");
    if (first === second || !first || !second) broken.push(`sorting twice gives ${first}, then ${second}`);
  }
  const unfold = page.locator("#unfold");
  if (await unfold.count()) {
    for (const open of [true, false]) {
      await unfold.click();
      const states = await page.evaluate(() => Array.from(document.querySelectorAll("#list details"), (one) => one.open));
      if (states.some((state) => state !== open)) broken.push(`"Open all" leaves clusters ${open ? "closed" : "open"}`);
    }
  }
  return broken;
}

/** Searches for a word that no row has, which must hide all rows; an empty search must show all of them again. */
async function trySearch(page, find) {
  const id = await find.getAttribute("id");
  const shown = () => page.evaluate((name) => {
    const own = document.querySelector(`table[data-find="${name}"]`);
    const groups = own ? own.tBodies[0].rows : document.getElementById("list").tBodies;
    return Array.from(groups).filter((group) => group.checkVisibility()).length;
  }, id);
  const all = await shown();
  await find.fill("nobodyhasthisword");
  const none = await shown();
  await find.fill("");
  const again = await shown();
  return all > 0 && none === 0 && again === all ? [] : [`#${id} shows ${all}, then ${none}, then ${again} rows`];
}

/** Creates a collection with the page, inserts a hostile document, finds it again, and checks the answers shown. */
export async function tryService(page) {
  const broken = [];
  const send = async (operation, fill) => {
    await page.locator("nav button", { hasText: new RegExp(`${operation}$`) }).first().click();
    await fill();
    await page.locator("button.send").click();
    await page.waitForFunction(() => document.getElementById("answer").textContent !== "");
    return page.locator("#answer").textContent();
  };
  const expect = (answer, wanted) => {
    if (!wanted.test(answer)) broken.push(`${wanted} expected, got: ${answer.slice(0, 200)}`);
  };
  await page.waitForSelector("nav button[aria-current=true]");
  expect(await send("create-collection", async () => {}), /^(200|201|204|409)/);
  await page.locator("nav button", { hasText: /drop-collection$/ }).first().click();
  const sends = await page.locator("#form").evaluate((form) => form.checkValidity());
  if (sends) broken.push("a collection that nobody named is removed");
  const text = `${NAMES.join(" ")} ${"enough words to be compared with others ".repeat(5)}`;
  const fill = (body) => async () => page.locator("textarea[name=body]").fill(JSON.stringify(body));
  expect(await send("check-and-insert", fill({ id: NAMES[1], text })), /^200/);
  expect(await send("query", fill({ text })), /^200[^]*onerror=window/);
  return broken;
}
