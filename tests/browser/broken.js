// Pages that each break one rule, which the checks must detect.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const BROKEN = [
  ["a script that fails", "nothing on the console", "<script>throw new Error('made to fail')</script>"],
  ["a picture from elsewhere", "nothing is fetched from elsewhere", "<style>main{background:url(https://foreign.example/a.png)}</style>"],
  ["a field without label", "axe finds nothing", "<input>"],
  ["grey on grey", "axe finds nothing", "<p style='color:#999;background:#aaa'>hardly to be read</p>"],
  ["a wide block", "the page does not scroll sideways", "<div style='width:2000px'>wide</div>"],
  ["a text that ran", "text is inert", "<script>window.broken=1</script>"],
  ["an element out of a text", "text is inert", "<img alt='' src='data:,'>"],
  ["a turning character", "text is inert", "<p>invoice\u202egpj</p>"],
  ["a cut word", "no text is cut", "<p style='width:20px;overflow:hidden;white-space:nowrap'>much too long</p>"],
  ["a label outside", "no text is cut", "<svg width='40' height='20'><text x='35' y='15'>outside</text></svg>"],
  ["labels over each other", "no label lies over another", "<svg width='90' height='20'><text x='5' y='15'>one</text><text x='9' y='15'>two</text></svg>"],
  ["what is missing", "it says what it must", "", { says: ["what nobody wrote"] }],
  ["a control that does nothing", "its controls work", "", { act: async () => ["nothing happened"] }],
];

export function brokenPages(dir) {
  return BROKEN.map(([name, breaks, body, more = {}], at) => {
    const file = join(dir, `broken-${at}.html`);
    writeFileSync(file, `<!doctype html><html lang="en"><meta charset="utf-8"><title>broken</title><main><h1>Broken</h1>${body}</main></html>`);
    return { name, breaks, page: { url: pathToFileURL(file).href, ...more } };
  });
}
