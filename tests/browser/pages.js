// Makes every kind of page with the real binary: from the examples, from hostile inputs, and from empty inputs.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { NAMES, crowd, fingerprints, hostileLabels, hostileRecords, lines } from "./hostile.js";

const EXAMPLES = resolve(import.meta.dirname, "../../examples");
/** A file name as hostile as a file system allows. */
const FILE = `"><img src=x onerror=window.broken=1>\u202egpj`;

class Maker {
  constructor(binary, dir) {
    this.binary = resolve(binary);
    this.dir = dir;
    this.pages = [];
  }

  run(...args) {
    const options = { stdio: ["ignore", "ignore", "pipe"], cwd: this.dir };
    try {
      execFileSync(this.binary, args, options);
    } catch (error) {
      throw new Error(`lookalike ${args.join(" ").slice(0, 200)}: ${error.stderr}`);
    }
  }

  write(name, content) {
    writeFileSync(join(this.dir, name), content);
    return name;
  }

  add(name, file, { says = [] } = {}) {
    this.pages.push({ name, url: pathToFileURL(join(this.dir, file)).href, says });
  }

  dedup(name, input, says) {
    this.run("dedup", input, "-o", name, "--quiet");
    this.add(name, `${name}/report.html`, { says });
  }

  overlap(name, input, options, says) {
    this.run("overlap", input, ...options, "-o", name, "--quiet");
    this.add(name, `${name}/atlas.html`, { says });
  }

  sweep(name, input, options, says) {
    this.run("evaluate", "sweep", input, ...options, "--page", `${name}.html`, "--quiet");
    this.add(name, `${name}.html`, { says });
  }

  index(name, input, says) {
    this.run("index", "build", input, "-o", `${name}.lkix`, "--quiet");
    this.run("index", "info", `${name}.lkix`, "--page", `${name}.html`);
    this.add(name, `${name}.html`, { says });
  }

  explain(name, options, says) {
    this.run("explain", ...options, "--page", `${name}.html`, "--quiet");
    this.add(name, `${name}.html`, { says });
  }
}

/** Makes all pages that are files. Returns them as `{name, url, says}`, where `says` are texts that a page must show. */
export function makePages(binary, dir) {
  mkdirSync(dir, { recursive: true });
  const make = new Maker(binary, dir);
  const articles = join(EXAMPLES, "articles.jsonl");
  const hostile = make.write(`${FILE}.jsonl`, lines(hostileRecords()));
  const many = make.write("crowd.jsonl", lines(crowd(3000)));
  const none = make.write("none.jsonl", "");
  const alone = make.write("alone.jsonl", lines([{ id: "alone", text: "one record with nobody like it in the world" }]));
  const copied = make.write("copied.jsonl", lines(["", " again"].map((end, at) => ({ id: `${at}`, text: `one record with nobody like it in the world but one${end}` }))));
  const shown = NAMES.slice(0, 6);

  make.dedup("report-pages", join(EXAMPLES, "pages"), ["harbour-clock"]);
  make.dedup("report-articles", articles, ["ferry-timetable", "articles.jsonl", "kept.jsonl"]);
  make.dedup("report-hostile", hostile, shown);
  make.dedup("report-crowd", many, ["3,000"]);
  make.dedup("report-none", none, ["No record was read."]);
  make.dedup("report-alone", alone, []);

  make.overlap("atlas-articles", articles, [], []);
  make.overlap("atlas-hostile", hostile, ["--server", "field:site"], [`mirror ${NAMES[0]}`]);
  make.overlap("atlas-crowd", many, [], ["mirror-7.example"]);
  make.overlap("atlas-none", none, [], []);
  make.overlap("atlas-alone", alone, [], []);

  const elsewhere = "Expected on other documents";
  make.sweep("sweep-articles", articles, [], [elsewhere, "both ways added", "cheapest", "Find pairs with it:", "lookalike pairs"]);
  make.sweep("sweep-hostile", hostile, ["--sketches", "simhash:64,none", "--shingles", "words:1"], [elsewhere]);
  const unmet = ["--sketches", "simhash:64", "--shingles", "chars:9", "--weights", "tf", "--precision", "1", "--recall", "1"];
  make.sweep("sweep-unmet", articles, unmet, [elsewhere, "No setting reaches the target"]);
  make.sweep("sweep-alone", copied, [], ["one of the halves has no true pair"]);
  make.run("fingerprint", hostile, "-o", `${FILE}.lkfp`, "--quiet");
  const labels = ["--fingerprints", "--labels", make.write("labels.jsonl", lines(hostileLabels()))];
  make.sweep("sweep-labels", `${FILE}.lkfp`, labels, ["Expected on other labels", "by resampling pairs; the true limits are wider"]);

  make.index("index-hostile", make.write("hostile.fp.jsonl", lines(fingerprints(5000))), shown);
  make.index("index-alone", make.write("alone.fp.jsonl", lines(fingerprints(1))), []);

  const pages = ["harbour-clock", "harbour-clock-revised"].map((page) => join(EXAMPLES, `pages/en/${page}.html`));
  make.explain("explain-pages", pages, ["watchmaker"]);
  make.explain("explain-minhash", [...pages, "--method", "minhash"], ["watchmaker"]);
  make.explain("explain-shingles", [...pages, "--method", "super-shingle"], ["watchmaker"]);
  make.explain("explain-hostile", [`copy of ${NAMES[1]}`, NAMES[1], "--in", hostile], [NAMES[1]]);
  return make.pages;
}

/** Starts the service. Returns its URL, and a function `stop` that ends it. */
export function startService(binary, dir) {
  const args = ["serve", "--data", join(dir, "store"), "--listen", "127.0.0.1:0", "--queue-timeout", "20"];
  const service = spawn(resolve(binary), args, { stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((done, fail) => {
    let log = "";
    service.once("error", fail);
    service.once("exit", (code) => fail(new Error(`the service ended with ${code}: ${log}`)));
    service.stderr.on("data", (chunk) => {
      log += chunk;
      const address = /"address":"([^"]+)"/.exec(log);
      if (address) done({ url: `http://${address[1]}/`, stop: () => service.kill() });
    });
  });
}
