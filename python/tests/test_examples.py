"""The examples, run as their readers run them."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from services import running_service

import lookalike as lk

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
ARTICLES = ROOT / "examples" / "articles.jsonl"
# Numbers of pairs in examples/README.md.
COPIES = 4
NEAR = 10


def example(name: str):
    """Loads an example as a module. If its library is missing, the test is skipped with a message, or fails in CI."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        missing(error.name)
    return module


def missing(what: str | None) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and CI runs every example")
    pytest.skip(f"{what} is missing: this example was not run")


def articles() -> list[dict[str, object]]:
    return [json.loads(line) for line in ARTICLES.read_text(encoding="utf-8").splitlines()]


def test_a_dataset_is_cleaned_and_saved(tmp_path, capsys):
    import datasets

    example("clean_dataset").main(str(ARTICLES), str(tmp_path / "cleaned"))
    cleaned = datasets.load_from_disk(tmp_path / "cleaned")
    assert len(cleaned) == len(articles()) - COPIES - NEAR
    assert cleaned.column_names == ["id", "url", "title", "text", "date"]
    told = capsys.readouterr().out
    assert told.count(" went for ") == COPIES + NEAR and "bees-" in told


def test_each_site_keeps_one_of_its_own_pages(capsys):
    polars = pytest.importorskip("polars")
    rows = [
        {"id": "a", "url": "http://one.example/a", "text": "a rose is a rose"},
        {"id": "b", "url": "http://one.example/b", "text": "a rose is a rose"},
        {"id": "c", "url": "http://two.example/c", "text": "a rose is a rose"},
    ]
    unique = example("frame_by_site").dedup_by_site(polars.DataFrame(rows))
    assert unique["id"].to_list() == ["a", "c"] and unique["stands_for"].to_list() == [2, 1]
    example("frame_by_site").main(str(ARTICLES))
    assert f"{len(articles())} rows" in capsys.readouterr().out


def test_a_daily_job_keeps_what_no_earlier_day_kept(tmp_path, capsys):
    rows = articles()
    days = {"2026-01-01": rows[:15], "2026-01-02": rows[15:30], "2026-01-03": rows[30:]}
    job = example("daily_job")
    for day, own in [*days.items(), ("2026-01-03", days["2026-01-03"])]:
        today = tmp_path / "today.jsonl"
        today.write_text("".join(json.dumps(row) + "\n" for row in own), encoding="utf-8")
        job.main(str(tmp_path / "archive"), str(today), day)
    kept = [
        json.loads(line)
        for day in days
        for line in (tmp_path / "archive" / day / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    # The first record of each family is kept, whatever its day.
    assert len(kept) == len(rows) - COPIES - NEAR
    assert len(lk.dedup(kept, id="id").removed) == 0
    assert "2026-01-02: 15 documents" in capsys.readouterr().out


def test_steps_of_datatrove_keep_what_one_job_keeps(tmp_path):
    example("datatrove_steps")
    source = tmp_path / "source"
    source.mkdir()
    rows = articles()
    for number in range(3):
        part = rows[number::3]
        (source / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part if row["text"]), encoding="utf-8")
    subprocess.run([sys.executable, EXAMPLES / "datatrove_steps.py", source, tmp_path / "out"], check=True, capture_output=True, timeout=600)
    kept = [json.loads(line) for file in (tmp_path / "out" / "kept").glob("*.jsonl") for line in file.read_text(encoding="utf-8").splitlines()]
    # One article is missing because it has no text, and datatrove does not read it.
    assert len(kept) == len(rows) - COPIES - NEAR - 1
    assert len(lk.dedup(kept, id="id").removed) == 0
    assert all(row["metadata"]["url"] for row in kept)


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_spider_drops_pages_that_the_service_has_seen(tmp_path):
    if importlib.util.find_spec("scrapy") is None:
        missing("scrapy")
    site = tmp_path / "site"
    site.mkdir()
    article = "<p>" + " ".join(row["text"] for row in articles()[1:3]) + "</p>"
    pages = {"first": article, "mirror": article, "other": "<p>" + str(articles()[5]["text"]) + "</p>"}
    links = "".join(f'<a href="{name}.html">{name}</a> ' for name in pages)
    (site / "index.html").write_text(f"<title>All</title><p>A list of all pages that are here, with a link to each.</p>{links}")
    for name, text in pages.items():
        (site / f"{name}.html").write_text(f"<!doctype html><title>{name}</title><article>{text}</article>")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietFiles, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    start = f"http://127.0.0.1:{server.server_port}/index.html"
    found = []
    try:
        with running_service(tmp_path / "store") as url:
            lk.Client(url).create("pages")
            for crawl in ("one.jsonl", "two.jsonl"):
                done = subprocess.run(
                    [sys.executable, "-m", "scrapy", "runspider", EXAMPLES / "scrapy_pipeline.py", "-a", f"start={start}",
                     "-s", f"LOOKALIKE_URL={url}", "-s", "TELNETCONSOLE_ENABLED=False", "-o", tmp_path / crawl],
                    capture_output=True, text=True, timeout=600,
                )
                assert done.returncode == 0, done.stderr
                file = tmp_path / crawl
                lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
                found.append({json.loads(line)["url"].rpartition("/")[2] for line in lines})
                # The message names the page that is kept.
                assert re.search(rf"is exact: http://127.0.0.1:{server.server_port}/(first|mirror).html ", done.stderr)
    finally:
        server.shutdown()
        server.server_close()
    # Either of two equal pages may come first; a second crawl finds nothing new.
    first, second = found
    assert first in ({"index.html", "first.html", "other.html"}, {"index.html", "mirror.html", "other.html"})
    assert second == set()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory) -> Path:
    """Returns a page with the HTML outputs of the notebook."""
    try:
        import nbclient
        import nbformat
    except ModuleNotFoundError as error:
        missing(error.name)
    os.environ["ARTICLES"] = str(ARTICLES)
    read = nbformat.read(EXAMPLES / "explain_pair.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in read.cells), "the notebook is kept without outputs"
    nbclient.NotebookClient(read, timeout=600, kernel_name="python3").execute()
    outputs = [output for cell in read.cells for output in cell.get("outputs", [])]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(shown) == 2 and all(output["output_type"] == "execute_result" for output in outputs)
    page = tmp_path_factory.mktemp("notebook") / "outputs.html"
    page.write_text("<!doctype html><meta charset=utf-8><title>Outputs</title>" + "<hr>".join(shown), encoding="utf-8")
    return page


def test_a_notebook_shows_a_result_and_why_two_documents_are_a_pair(notebook):
    text = notebook.read_text(encoding="utf-8")
    assert f"<b>{len(articles())}</b><br>documents" in text and "<svg" in text and "<iframe sandbox" in text


def test_outputs_of_a_notebook_are_seen_in_a_browser(notebook):
    modules = ROOT / "tests" / "browser" / "node_modules"
    if not (modules.exists() and Path("/usr/bin/chromium").exists()):
        missing("Chromium, or what scripts/test-browser --install gets,")
    shot = os.environ.get("LOOKALIKE_NOTEBOOK_SHOT")
    done = subprocess.run(
        ["node", ROOT / "tests" / "browser" / "notebook.js", notebook, *([shot] if shot else [])],
        capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0, done.stderr
    summary, explanation = json.loads(done.stdout)
    assert "documents" in summary and "near-duplicates" in summary and "Largest clusters" in summary
    assert "resemblance" in explanation.lower()
