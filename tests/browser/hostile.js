// Inputs that try to break a page: markup, templates, control and bidirectional characters, endless words, very many records.

/** Script that runs if a page treats a text as markup; the checks look for `window.broken`. */
const RUN = "window.broken=1";

export const NAMES = [
  `<script>${RUN}</script>`,
  `"><img src=x onerror=${RUN}>`,
  `'><svg onload=${RUN}>`,
  `</script><script>${RUN}</script>`,
  `</style><style>body{display:none}</style>`,
  `</title></head><body onload=${RUN}>`,
  `<!-- <iframe src="https://foreign.example/frame">`,
  `javascript:${RUN}`,
  `{{ 7 * 7 }}{% for x in y %}\${${RUN}}`,
  `&lt;b&gt; &amp;amp; &#x3c;i&#x3e;`,
  "invoice\u202egpj.exe\u202c and \u2067right\u2069 to left \u200f\u061c\u200e",
  "null\u0000 bell\u0007 escape\u001b[31m delete\u007f next line\u0085 line separator\u2028",
  "z\u0351\u036b\u0343\u036a\u0302".repeat(60),
  "\u{1f469}\u200d\u{1f469}\u200d\u{1f467}".repeat(40),
  "endless".repeat(400),
  "\ufdfd".repeat(80),
  "عنوان طويل جدا من اليمين إلى اليسار <b>",
  " ",
];

/** Returns a text of `words` words that contains every hostile name; other words depend on `turn`. */
function text(words, turn) {
  const parts = [];
  for (let at = 0; at < words; at++) {
    parts.push(at % 12 === 5 ? NAMES[(at / 12) % NAMES.length | 0] : `word${(at * 7919 + turn * 104729) % 100003}`);
  }
  return parts.join(" ");
}

/** Returns three records for each hostile name: a text, a near-copy with markup, and an exact copy. */
export function hostileRecords() {
  return NAMES.flatMap((name, turn) => {
    const whole = text(300, turn);
    const marked = whole.replace(/word\d+$/, `${name} <script>${RUN}</script> \u202eat the end\u202c ${"W".repeat(3000)}`);
    const url = `http://${turn % 2 ? "one" : "two"}.example/${name}`;
    return [
      { id: name, url, site: name, title: name, text: whole },
      { id: `copy of ${name}`, url: `${url}?copy`, site: `mirror ${name}`, title: name, text: marked },
      { id: `again ${name}`, url: `${url}?again`, site: `mirror ${name}`, title: name, text: whole },
    ];
  });
}

/** Returns labels of hostile records: texts with the same name are near-duplicates, those with neighbouring names are not. */
export function hostileLabels() {
  return NAMES.flatMap((name, at) => [
    { a: name, b: `copy of ${name}`, label: true },
    { a: name, b: NAMES[(at + 1) % NAMES.length], label: false },
  ]);
}

/** Returns `clusters` clusters of three records: two equal texts, and one with a changed word. */
export function crowd(clusters) {
  const records = [];
  for (let cluster = 0; cluster < clusters; cluster++) {
    const site = `server-${cluster % 40}.example`;
    const words = Array.from({ length: 40 }, (_, at) => `c${cluster}w${at}`);
    for (let copy = 0; copy < 3; copy++) {
      words[39] = copy === 2 ? "changed" : words[39];
      const mirror = copy ? `mirror-${cluster % 40}.example` : site;
      records.push({ id: `http://${mirror}/${cluster}/${copy}`, text: words.join(" ") });
    }
  }
  return records;
}

/** Returns many fingerprints with hostile ids, half of them in one crowded range. */
export function fingerprints(count) {
  return Array.from({ length: count }, (_, at) => {
    const spread = (BigInt(at) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    const value = at % 2 ? 0x7000000000000000n | BigInt(at % 64) : spread;
    return { id: `${NAMES[((at % 64) >> 1) % NAMES.length]} ${at}`, fingerprint: value.toString(16).padStart(16, "0") };
  });
}

/** Returns the records as text, one per line. */
export function lines(records) {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}
