// The rules for pages. Each function takes an open browser page and returns the list of violations.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts recording the console messages of a page and its requests to other addresses. */
export function watch(page, own) {
  const seen = { console: [], foreign: [] };
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.console.push(message.text());
  });
  page.on("pageerror", (error) => seen.console.push(String(error)));
  page.on("dialog", (dialog) => {
    seen.console.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (url !== own && !url.startsWith("data:") && !(own.startsWith("http") && url.startsWith(own))) seen.foreign.push(url);
  });
  return seen;
}

/** Returns broken accessibility rules, best practices included, each with the first element that breaks it. Checks all rules or only those named. */
export async function axe(page, rules) {
  await page.evaluate(AXE);
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const { violations } = await page.evaluate((chosen) => window.axe.run(document, chosen), options);
  return violations.map((rule) => {
    const [first] = rule.nodes;
    return `${rule.id} (${rule.nodes.length}): ${first.html.slice(0, 160)} ${first.failureSummary.replace(/\s+/g, " ").slice(0, 300)}`;
  });
}

/** Returns elements wider than the window, because the page must not scroll sideways. */
export function overflow(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    const wide = Array.from(document.querySelectorAll("body *")).filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.right > root.clientWidth + 1 && !element.closest(".scroll, .wide, svg *, .sr");
    });
    const names = wide.slice(0, 4).map((element) => `<${element.localName} class="${element.className.baseVal ?? element.className}">`);
    return [`${root.scrollWidth} px in a window of ${root.clientWidth}: ${names.join(" ")}`];
  });
}

/** Returns texts that are cut off: in an element that hides its overflow, or in a label that leaves its drawing. */
export function cut(page) {
  return page.evaluate(() => {
    const found = [];
    for (const element of document.querySelectorAll("body *:not(.sr, svg, svg *)")) {
      const style = getComputedStyle(element);
      const hides = ["hidden", "clip"].includes(style.overflowX) && element.textContent.trim() !== "";
      if (hides && element.scrollWidth > element.clientWidth + 1) found.push(`<${element.localName}> cuts "${element.textContent.trim().slice(0, 40)}"`);
    }
    for (const label of document.querySelectorAll("svg text")) {
      const inner = label.getBoundingClientRect();
      const outer = label.ownerSVGElement.getBoundingClientRect();
      if (inner.width === 0) continue;
      const inside = inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 2 && inner.bottom <= outer.bottom + 2;
      if (!inside) found.push(`the label "${label.textContent}" leaves its drawing`);
    }
    return found.slice(0, 5);
  });
}

/** Returns labels of drawings that overlap. */
export function overlaps(page) {
  return page.evaluate(() => {
    const found = [];
    for (const drawing of document.querySelectorAll("svg")) {
      const boxes = Array.from(drawing.querySelectorAll("text"), (label) => [label, label.getBoundingClientRect()]);
      const shown = boxes.filter(([, box]) => box.width > 0);
      shown.forEach(([label, a], at) => {
        for (const [other, b] of shown.slice(at + 1)) {
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 1 && down > 3) found.push(`"${label.textContent}" lies over "${other.textContent}"`);
        }
      });
    }
    return found.slice(0, 5);
  });
}

/** Returns markup that came from a text instead of the template. */
export function alive(page) {
  return page.evaluate(() => {
    const found = [];
    if (window.broken !== undefined) found.push("a text was run as a script");
    for (const element of document.querySelectorAll("img, iframe, object, embed, base, form[action], meta[http-equiv=refresh]")) {
      found.push(`<${element.localName}> is in the page`);
    }
    for (const element of document.querySelectorAll("*")) {
      const handler = Array.from(element.attributes).find((attribute) => attribute.name.startsWith("on"));
      if (handler) found.push(`<${element.localName} ${handler.name}>`);
      const target = element.getAttribute("href") ?? "";
      if (element.localName !== "link" && target !== "" && !target.startsWith("#")) found.push(`a link to ${target.slice(0, 60)}`);
    }
    // A character that changes the direction of the text after it must stay in its cell, or be shown by its name.
    const turning = /[\u202a-\u202e\u2066-\u2069]/;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (!["SCRIPT", "STYLE", "TEXTAREA"].includes(parent.tagName) && turning.test(walker.currentNode.data)) {
        found.push(`a turning character in "${JSON.stringify(walker.currentNode.data).slice(0, 80)}"`);
      }
    }
    return found.slice(0, 5);
  });
}

/** Returns texts that the page must show literally but does not. */
export async function unsaid(page, says) {
  const text = await page.evaluate(() => document.documentElement.textContent);
  return says.filter((wanted) => !text.includes(wanted)).map((wanted) => `does not show ${wanted}`);
}
