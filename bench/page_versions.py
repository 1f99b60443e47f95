#!/usr/bin/env python3
"""Measures the service's answers for a site that is crawled version by version: which pages of each version are new, near or exact,
compared with the truth, and which share of them is known by paragraphs, compared with a count over the texts.

    page_versions.py BINARY DOCS.jsonl.gz TRUTH.jsonl.gz [RADIUS]

DOCS has id, page, version and html; TRUTH has a, b, j and same_page, as in the corpus java-api-html.
"""
import collections, gzip, json, re, subprocess, sys, tempfile, urllib.request


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    binary, docs, truth = sys.argv[1:4]
    radius = int(sys.argv[4]) if len(sys.argv) > 4 else 6
    docs, truth = lines(docs), lines(truth)
    versions = sorted({doc["version"] for doc in docs}, key=int)
    resemblance = collections.defaultdict(dict)
    for pair in truth:
        resemblance[pair["a"]][pair["b"]] = pair["j"]
        resemblance[pair["b"]][pair["a"]] = pair["j"]
    with tempfile.TemporaryDirectory() as folder:
        service = subprocess.Popen([binary, "serve", "--data", folder, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        try:
            for line in service.stderr:
                entry = json.loads(line)
                if entry["event"] == "listening":
                    break
            measure(f"http://{entry['address']}/v1/collections/pages", docs, versions, resemblance, radius)
        finally:
            service.terminate()
            service.wait()


def ask(url, body, method="POST"):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def paragraphs(text):
    """Splits a text at blank lines as docs/reference/service.md defines; a paragraph is the tuple of its words."""
    found = (re.findall(r"\w+", part.casefold()) for part in re.split(r"\n\s*\n", text))
    return [tuple(words) for words in found if words]


def measure(url, docs, versions, resemblance, radius):
    ask(url, {"radius": radius, "keep": {"texts": True, "paragraphs": True}}, "PUT")
    seen, earlier = set(), []
    print(f"radius {radius}")
    print("version pages new near exact | nearest is the same page | truth: some earlier page with j >= 0.8, >= 0.5 | "
          "near or exact of these | known share of words: service, by count, largest difference")
    for version in versions:
        pages = [doc for doc in docs if doc["version"] == version]
        verdicts, same, shares, counted, texts = collections.Counter(), 0, [], [], []
        close = {0.8: [0, 0], 0.5: [0, 0]}
        for doc in pages:
            share = ask(f"{url}/paragraphs?limit=0", {"html": doc["html"]})
            shares.append(share["known_share"])
            # All pages of a version are queried before any is inserted.
            found = ask(f"{url}/query?limit=1&verify=true", {"html": doc["html"]})
            verdicts[found["verdict"]] += 1
            if found["neighbours"]:
                same += found["neighbours"][0]["id"].split(":")[1] == doc["page"]
            best = max((resemblance[doc["id"]].get(other, 0) for other in earlier), default=0)
            for least, count in close.items():
                if best >= least:
                    count[0] += 1
                    count[1] += found["verdict"] != "new"
        for doc in pages:
            ask(f"{url}/insert", {"id": doc["id"], "html": doc["html"]})
            text = paragraphs(ask(f"{url}/get?text=true", {"id": doc["id"]})["text"])
            words = sum(map(len, text))
            counted.append(sum(len(part) for part in text if part in seen) / max(words, 1))
            texts.extend(text)
        seen.update(texts)
        earlier.extend(doc["id"] for doc in pages)
        mean = lambda values: sum(values) / len(values)
        print(version, len(pages), *(verdicts[word] for word in ("new", "near", "exact")), "|", same, "|",
              close[0.8][0], close[0.5][0], "|", close[0.8][1], close[0.5][1], "|",
              f"{mean(shares):.3f} {mean(counted):.3f} {max(abs(a - b) for a, b in zip(shares, counted)):.3f}")


main()
