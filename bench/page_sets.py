#!/usr/bin/env python3
"""Compares the mirrored page sets that `lookalike overlap -o` finds with those that were planted.

usage: page_sets.py LOOKALIKE [--manuals 100:200,75:150,55:120,50:100] [--servers 140] [--missing 0.02] [--dressed 0.3]
                    [--documents N] [--nested] [--texts FILE] [--seed 1] [--keep DIR] [-- MORE OPTIONS OF OVERLAP]

Every manual is SERVERS:PAGES. Its servers are drawn at random or, with --nested, are the first SERVERS. Each server lacks a random share of the
pages, and has the manual at one of three paths; a share of all servers adds a head and foot of its own to its pages. With --documents, manuals
of 20 to 400 pages on 5 to 200 servers are drawn until there are N documents, 40 % of which are pages of a single server. With --texts, the pages
are the texts of a JSON Lines file in random order, each once, such as `lookalike extract` makes of a crawl. Prints a line of JSON: the number of
sets found, the number of manuals for which a set has the planted pages and servers within 5 %, seconds, and peak memory.
"""
import argparse, json, os, random, subprocess, sys, tempfile
from pathlib import Path

VOCABULARY = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "nu", "re", "so", "ti", "va") for b in ("ber", "den", "gol", "mar", "pin", "ste") for c in ("", "a", "ik", "or")]


def line(seed):
    draw = random.Random(seed)
    return " ".join(draw.choices(VOCABULARY, k=9))


def block(name, count):
    return [line(f"{name}/{at}") for at in range(count)]


class Collection:
    def __init__(self, args):
        self.args, self.draw = args, random.Random(args.seed)
        dressed = {server for server in range(args.servers) if self.draw.random() < args.dressed}
        self.dress = {server: (block(f"head {server}", 3), block(f"foot {server}", 3)) for server in dressed}
        self.documents, self.planted = 0, []
        self.texts = None
        if args.texts:
            with open(args.texts, encoding="utf-8") as file:
                self.texts = [json.loads(text)["text"].splitlines() for text in file]
            self.draw.shuffle(self.texts)

    def record(self, server, path, lines):
        head, foot = self.dress.get(server, ([], []))
        self.documents += 1
        url = f"http://s{server}.example/{path}"
        return json.dumps({"url": url, "text": "\n".join([*head, *lines, *foot])}) + "\n"

    def manual(self, number, servers, pages):
        order = list(range(self.args.servers))
        chosen = order[:servers] if self.args.nested else self.draw.sample(order, servers)
        self.planted.append((set(f"s{server}.example" for server in chosen), pages))
        texts = self.pages(number, pages)
        for server in chosen:
            base = ("docs", "~ftp/pub", "mirror/2")[server % 3]
            for page, text in enumerate(texts):
                if self.draw.random() >= self.args.missing:
                    yield self.record(server, f"{base}/manual{number}/{page}.html", text)

    def pages(self, number, pages):
        if self.texts is not None:
            if len(self.texts) < pages:
                sys.exit(f"the file of texts has too few: manual {number} lacks {pages - len(self.texts)}")
            own, self.texts = self.texts[:pages], self.texts[pages:]
            return own
        common = block(f"manual {number}", 5)
        return [common + block(f"manual {number} page {page}", self.draw.randint(14, 26)) for page in range(pages)]

    def records(self):
        if not self.args.documents:
            for number, (servers, pages) in enumerate(self.args.manuals):
                yield from self.manual(number, servers, pages)
            return
        number = 0
        while self.documents < 0.6 * self.args.documents:
            servers = min(self.args.servers, int(5 * 40 ** self.draw.random()))
            yield from self.manual(number, servers, int(20 * 20 ** self.draw.random()))
            number += 1
        while self.documents < self.args.documents:
            page = self.documents
            yield self.record(self.draw.randrange(self.args.servers), f"own/{page}", block(f"own {page}", 20))


def hits(planted, sets):
    """Returns the number of manuals for which a set has the same servers and number of pages, within 5 %."""
    by_server = {}
    for number, found in enumerate(sets):
        for server in found[0]:
            by_server.setdefault(server, []).append(number)

    def is_hit(servers, pages):
        near = {number for server in list(servers)[:3] for number in by_server.get(server, [])}
        return any(len(servers ^ sets[n][0]) <= 0.05 * len(servers) and abs(sets[n][1] - pages) <= 0.05 * pages for n in near)

    return sum(is_hit(*manual) for manual in planted)


def servers_of(found):
    if "core" not in found:
        return set(found["servers"])
    return {*found["core"], *(server["server"] for server in found["approximate"])}


def main():
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    own, more = words[:end], words[end + 1 :]
    parser = argparse.ArgumentParser()
    parser.add_argument("lookalike")
    parser.add_argument("--manuals", default="100:200,75:150,55:120,50:100", type=lambda text: [tuple(map(int, part.split(":"))) for part in text.split(",")])
    for name, kind, default in [("servers", int, 140), ("missing", float, 0.02), ("dressed", float, 0.3), ("documents", int, 0), ("seed", int, 1)]:
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--texts")
    parser.add_argument("--keep")
    args = parser.parse_args(own)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(args.keep or folder)
        folder.mkdir(exist_ok=True, parents=True)
        collection = Collection(args)
        with open(folder / "in.jsonl", "w", encoding="utf-8") as out:
            out.writelines(collection.records())
        command = [args.lookalike, "overlap", folder / "in.jsonl", "-o", folder / "atlas", "--overwrite", "--quiet"]
        command += ["--chunk", "lines:1", "--min-shared", "7", *more]
        subprocess.run(command, check=True)
        run = json.loads((folder / "atlas" / "run.json").read_text())
        with open(folder / "atlas" / "mirrors.jsonl", encoding="utf-8") as lines:
            sets = [(servers_of(found), found["pages"]) for found in map(json.loads, lines)]
        stages = {stage[0]: [round(seconds, 2) for seconds in stage[1:]] for stage in run["measured"]["stages"]}
        print(json.dumps({
            "documents": collection.documents, "servers": args.servers, "missing": args.missing, "planted": len(collection.planted),
            "sets": len(sets), "sets of one page": sum(pages == 1 for _, pages in sets), "within 5 %": hits(collection.planted, sets),
            "seconds (wall, processor)": stages, "peak MiB": run["measured"]["peak_memory"] >> 20,
        }))


main()
