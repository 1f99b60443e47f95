#!/usr/bin/env python3
"""Measures the service on paragraphs: how many with one changed word are found in four languages, and how many unrelated ones; how much
of a law is known after an earlier version was inserted; memory and time with many paragraphs.

    paragraphs.py BINARY DATA [MANY]

DATA: the folder with de-laws-revisions, zh-laws, newsgroups20 and install-guide-html; MANY paragraphs of random words, 500,000
by default.
"""
import contextlib, gzip, json, os, random, re, statistics, subprocess, sys, tempfile, time, urllib.request

WORDS = 30
EDITED = 50


def main():
    binary, data = sys.argv[1:3]
    many = int(sys.argv[3]) if len(sys.argv) > 3 else 500_000
    for radius, shingle in [(3, "words:5"), (10, "words:5"), (8, "words:2"), (10, "words:2")]:
        edits(binary, data, radius, shingle)
    laws(binary, data)
    for radius in (3, 10):
        volume(binary, many, radius)


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith("gz") else open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@contextlib.contextmanager
def service():
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([binary_of(), "serve", "--data", folder, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                entry = json.loads(line)
                if entry["event"] == "listening":
                    break
            yield f"http://{entry['address']}", folder, process
        finally:
            process.terminate()
            process.wait()


def binary_of():
    return sys.argv[1]


def ask(url, body=None, method=None):
    method = method or ("GET" if body is None else "POST")
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text


def create(url, name, radius, shingle, rule="auto"):
    scheme = ask(f"{url}/v1/collections/default-scheme", {}, "PUT")["scheme"]
    scheme = re.sub("shingle=[^ ]+", f"shingle={shingle}", scheme)
    body = {"radius": radius, "scheme": scheme, "keep": {"paragraphs": True}, "paragraphs": rule}
    ask(f"{url}/v1/collections/{name}", body, "PUT")
    return f"{url}/v1/collections/{name}"


def is_word(token):
    return token.isalpha()


def tokens(text, language):
    """Splits a text into words as the scheme does (UAX #29), and the characters between them: in Chinese and Japanese single characters, and
    runs of katakana or of Latin letters."""
    return re.findall(r"[\u30a0-\u30ff]+|[A-Za-z]+|.", text, re.S) if language in ("zh", "ja") else re.split(r"(\W+)", text)


def corpora(data):
    """Yields paragraphs of four languages, each text once."""
    sources = {"en": "newsgroups20", "de": "de-laws-revisions", "zh": "zh-laws", "ja": "install-guide-html"}
    for language, folder in sources.items():
        path = os.path.join(data, folder, "docs.jsonl.gz")
        docs = [doc for doc in lines(path) if language != "ja" or doc["id"].startswith("ja/")]
        seen = {}
        for doc in docs:
            text = doc["text"]
            parts = re.split(r"\n\s*\n", text) if re.search(r"\n\s*\n", text.strip()) else text.split("\n")
            for part in parts:
                words = [token for token in tokens(part, language) if is_word(token)]
                if len(words) >= WORDS:
                    seen.setdefault(" ".join(part.split()), words)
        yield language, seen


def resemble(a, b):
    pairs = [set(zip(words, words[1:])) for words in (a, b)]
    return len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1])


def edits(binary, data, radius, shingle):
    with service() as (url, *_):
        collection = create(url, "pages", radius, shingle)
        whole = create(url, "whole", radius, shingle)
        print(f"radius {radius} {shingle}: language, paragraphs of {WORDS} words or more, changed ones found, as whole documents, others, of these near, of these not alike")
        found_all, wrong = 0, 0
        for language, texts in corpora(data):
            draw = random.Random(language)
            chosen = sorted(texts)
            draw.shuffle(chosen)
            stored, others = chosen[:EDITED], chosen[EDITED:EDITED + 2500]
            changed = [edited(text, language, texts[draw.choice(chosen)], draw) for text in stored]
            ask(f"{collection}/insert", [{"id": f"{language}{at}", "text": text} for at, text in enumerate(stored)])
            ask(f"{whole}/insert", [{"id": f"{language}{at}", "text": text} for at, text in enumerate(stored)])
            answers = ask(f"{collection}/paragraphs", [{"text": text} for text in changed])
            named = [[other["id"] for paragraph in answer["paragraphs"] for other in paragraph["documents"]] for answer in answers]
            found = sum(f"{language}{at}" in ids for at, ids in enumerate(named))
            checks = ask(f"{whole}/check", [{"text": text} for text in changed])
            near, unlike = 0, 0
            for start in range(0, len(others), 500):
                part = others[start:start + 500]
                for text, answer in zip(part, ask(f"{collection}/paragraphs", [{"text": text} for text in part])):
                    for paragraph in answer["paragraphs"]:
                        near += paragraph["verdict"] != "new"
                        ids = [int(other["id"][2:]) for other in paragraph["documents"] if other["id"].startswith(language)]
                        alike = any(resemble(texts[text], texts[stored[at]]) >= 0.5 for at in ids)
                        unlike += paragraph["verdict"] != "new" and not alike
            found_all, wrong = found_all + found, wrong + unlike
            print(" ", language, len(texts), found, sum(check["verdict"] != "new" for check in checks), len(others), near, unlike)
        print("  all", found_all, "of", 4 * EDITED, "wrong", wrong)


def edited(text, language, words, draw):
    parts = tokens(text, language)
    place = draw.choice([at for at, part in enumerate(parts) if is_word(part)])
    parts[place] = draw.choice([word for word in words if word != parts[place]])
    return "".join(parts)


def laws(binary, data):
    docs = {doc["id"]: doc["text"] for doc in lines(os.path.join(data, "zh-laws", "docs.jsonl.gz"))}
    pairs = lines(os.path.join(data, "zh-laws", "versions.jsonl"))
    print("zh-laws, a law against its other version: radius, shingle, rule, shares of words known exactly and in all: mean, median, pairs above a half; pairs of j >= .9")
    for radius, shingle, rule in [(3, "words:5", "blank"), (3, "words:5", "auto"), (10, "words:2", "auto")]:
        with service() as (url, *_):
            exact, known, close = [], [], []
            for at, pair in enumerate(pairs):
                collection = create(url, "pages", radius, shingle, rule)
                ask(f"{collection}/insert", {"id": pair["a"], "text": docs[pair["a"]]})
                answer = ask(f"{collection}/paragraphs?limit=0", {"text": docs[pair["b"]]})
                exact.append(answer["exact_share"])
                known.append(answer["known_share"])
                if (pair["j"] or 0) >= 0.9:
                    close.append((pair["j"], answer["exact_share"], answer["known_share"]))
                urllib.request.urlopen(urllib.request.Request(collection, method="DELETE")).close()
            shown = lambda shares: f"{statistics.mean(shares):.3f} {statistics.median(shares):.3f} {sum(share > .5 for share in shares)}"
            print(" ", radius, shingle, rule, "|", shown(exact), "|", shown(known), "| of", len(pairs), "| j >= .9:", len(close),
                  *(f"{statistics.mean(values):.3f}" for values in zip(*close)))


def volume(binary, many, radius):
    draw = random.Random(7)
    words = [f"w{number}" for number in range(20_000)]
    paragraph = lambda: " ".join(draw.choices(words, k=60))
    with service() as (url, folder, process):
        collection = create(url, "pages", radius, "words:2")
        bare = ask(f"{url}/metrics")
        start, kept, number = time.monotonic(), [], 0
        taken = 0.0
        while number < many:
            parts = [[paragraph() for _ in range(50)] for _ in range(20)]
            kept.extend(part[0] for part in parts[:1])
            items = [{"id": f"{number}-{at}", "text": "\n".join(part)} for at, part in enumerate(parts)]
            begun = time.monotonic()
            ask(f"{collection}/insert", items)
            taken += time.monotonic() - begun
            number += 50 * len(items)
        ask(f"{collection}/compact", {})
        while ask(collection, None, "GET")["compacting"]:
            time.sleep(0.2)
        resident = gauge(ask(f"{url}/metrics"), "lookalike_collection_resident_bytes")
        size = sum(os.path.getsize(os.path.join(path, file)) for path, _, files in os.walk(folder) for file in files if file.endswith(".run"))
        ready = {"known": "\n".join(change(text, draw) for text in (kept * 100)[:100]), "new": "\n".join(paragraph() for _ in range(100))}
        print(f"radius {radius}: {number} paragraphs, inserted at {number / taken:.0f} a second; {resident / number:.1f} bytes in memory and {size / number:.1f} on disk each")
        for name, text in ready.items():
            times = []
            for _ in range(30):
                begun = time.monotonic()
                answer = ask(f"{collection}/paragraphs", {"text": text})
                times.append(time.monotonic() - begun)
            print(f"  100 {name} paragraphs: {answer['known']} known, {statistics.median(times) * 1000:.1f} ms in the median, {max(times) * 1000:.1f} at most")


def change(text, draw):
    parts = text.split(" ")
    parts[draw.randrange(len(parts))] = "changed"
    return " ".join(parts)


def gauge(page, name):
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(name + "{"))


main()
