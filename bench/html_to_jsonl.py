#!/usr/bin/env python3
"""Turn folders of HTML pages into one JSON Lines file of {"id", "text"}.

A plain stripper for trusted manuals, not for hostile pages: comments, scripts and styles go,
block elements break the line, other tags vanish, entities are resolved, white space collapses.
Pages without any text are left out. The order is that of the paths, so the bytes are the same
on every machine. Standard library only.
"""

import argparse
import functools
import gzip
import html
import json
import os
import pathlib
import re
import sys

UNSEEN = re.compile(r"<!--.*?-->|<(script|style|template|SCRIPT|STYLE)\b.*?</\1\s*>", re.S)
BLOCKS = frozenset(
    "p div br hr h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table tr td th thead tbody caption pre "
    "blockquote section article header footer nav main aside form fieldset figure figcaption "
    "address details summary title body head html".split()
)
NAME = re.compile(r"/?([A-Za-z0-9]+)")
ENTITY = re.compile(r"&#?\w+;?")
SUFFIXES = (".html", ".htm", ".xhtml", ".html.gz")


class Separators(dict):
    """What stands in the text for a tag: a line break for a block element, else nothing."""

    def __missing__(self, tag):
        name = NAME.match(tag)
        block = name is not None and name.group(1).lower() in BLOCKS
        return self.setdefault(tag, "\n" if block else "")


SEPARATORS = Separators()


@functools.lru_cache(maxsize=1 << 16)
def resolved(entity):
    """The characters of one entity."""
    return html.unescape(entity)


def visible_text(page):
    """The text of a page, one line a block."""
    head, *parts = UNSEEN.sub(" ", page).split("<")
    pieces = [head]
    for part in parts:
        tag, _, text = part.partition(">")
        pieces.append(SEPARATORS[tag[:12]])
        pieces.append(text)
    text = ENTITY.sub(lambda found: resolved(found.group()), "".join(pieces))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def pages_under(folder):
    """Regular HTML files below the folder, in the order of their paths."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = pathlib.Path(parent, name)
            if name.endswith(SUFFIXES) and not path.is_symlink():
                yield path


def read_page(path):
    """The decoded page; bytes that are not UTF-8 are replaced."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    return raw.decode("utf-8", errors="replace")


def write_records(folders, out):
    """Write a line a page; returns pages, bytes of HTML and bytes of text."""
    pages = html_bytes = text_bytes = 0
    for folder in folders:
        for path in pages_under(folder):
            page = read_page(path)
            html_bytes += len(page)
            text = visible_text(page)
            if not text:
                continue
            name = f"{folder.name}/{path.relative_to(folder)}"
            record = {"id": name.encode("utf-8", "replace").decode(), "text": text}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
            pages += 1
            text_bytes += len(text.encode())
    return pages, html_bytes, text_bytes


def main():
    """Read the options and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with open(options.output, "w", encoding="utf-8", newline="\n") as out:
        pages, html_bytes, text_bytes = write_records(options.folders, out)
    names = " ".join(folder.name for folder in options.folders)
    print(f"{names}\t{pages}\t{html_bytes}\t{text_bytes}", file=sys.stderr)


if __name__ == "__main__":
    main()
