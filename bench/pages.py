"""Compares HTML to text and reading web archives with the Python peers, on one core, in one run.

    cargo build --release -p lookalike-corpus --example page_speed
    pip install resiliparse==2.0.1 fastwarc==2.0.1 warcio==1.8.1 trafilatura==2.3.1 selectolax==1.0.2 lxml_html_clean
    taskset -c 0 python3 bench/pages.py target/release/examples/page_speed PAGES.jsonl.gz [ARCHIVE.warc.gz]

PAGES: lines with a field `html` (wcxb-pages, article-extraction-benchmark). The archive is repeated until it has
64 MB compressed. Figures are MB of HTML per second of CPU time; for archives, MB of the decompressed file.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import time

binary, pages_path = sys.argv[1:3]
LONG_ENOUGH = 2.0


def report(name, size, work):
    """Repeats `work`, which processes `size` bytes, until it can be timed, and prints its speed."""
    work()
    start, rounds = time.process_time(), 0
    while time.process_time() - start < LONG_ENOUGH:
        work()
        rounds += 1
    spent = time.process_time() - start
    print(f"{name:<40} {size * rounds / spent / 1e6:8.1f} MB/s", flush=True)


def repeated(path):
    """Returns a file in which the archive is repeated until it is large enough."""
    data = open(path, "rb").read()
    copy = tempfile.NamedTemporaryFile(suffix=".warc.gz")
    for _ in range(max(1, (64 << 20) // len(data))):
        copy.write(data)
    copy.flush()
    return copy


def pages_by(name, pages, extract):
    def work():
        for page in pages:
            extract(page)

    report(name, sum(len(page.encode()) for page in pages), work)


archive = repeated(sys.argv[3]) if len(sys.argv) > 3 else None
command = [binary, pages_path] + ([archive.name] if archive else [])
for line in subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines():
    row = json.loads(line)
    if row["name"] != "archive":
        print(f"lookalike {row['name']:<30} {row['mb_a_second']:8.1f} MB/s", flush=True)
    else:
        ours = row

opener = gzip.open if pages_path.endswith(".gz") else open
pages = [json.loads(line)["html"] for line in opener(pages_path, "rt", encoding="utf-8")]

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

plain = lambda main: lambda page: extract_plain_text(HTMLTree.parse(page), main_content=main, preserve_formatting=True)
pages_by("resiliparse, all text", pages, plain(False))
pages_by("resiliparse, main content", pages, plain(True))

from selectolax.lexbor import LexborHTMLParser

pages_by("selectolax (lexbor), all text", pages, lambda page: LexborHTMLParser(page).text())

import trafilatura

pages_by("trafilatura, fast", pages[::8], lambda page: trafilatura.extract(page, fast=True))
pages_by("trafilatura", pages[::8], trafilatura.extract)

if archive:
    size = len(gzip.open(archive.name).read())
    print(f"{'lookalike, archive':<40} {size * ours['rounds'] / ours['seconds'] / 1e6:8.1f} MB/s", flush=True)

    from fastwarc.warc import ArchiveIterator as Fast
    from warcio.archiveiterator import ArchiveIterator

    def fastwarc():
        for record in Fast(open(archive.name, "rb"), parse_http=True):
            record.reader.read()

    def warcio():
        for record in ArchiveIterator(open(archive.name, "rb")):
            record.content_stream().read()

    report("fastwarc, archive", size, fastwarc)
    report("warcio, archive", size, warcio)
