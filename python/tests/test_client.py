"""The client, with a service of the same wheel, and with one that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.server
import itertools
import json
import multiprocessing
import os
import pickle
import socket
import ssl
import threading
import warnings
from pathlib import Path

import pytest
from services import running_service

import lookalike as lk


TLS = Path(__file__).parents[2] / "crates/lookalike-cli/tests/e2e/tls"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("service") / "store") as url:
        yield url


def test_the_url_of_the_environment_was_passed_over(monkeypatch):
    monkeypatch.delenv("LOOKALIKE_URL", raising=False)
    assert lk.Client().url == "http://127.0.0.1:7280"
    monkeypatch.setenv("LOOKALIKE_URL", "http://service.example:80/")
    assert lk.Client().url == "http://service.example:80"
    assert lk.Client("http://other.example").url == "http://other.example"


def test_errors_named_requests_and_commands_instead_of_methods(service):
    with lk.Client(service) as client:
        client.create("named", radius=3)
        for call, told in [
            (lambda: client.check("nowhere", "a rose"), r"create\(\) it; collections\(\) lists them"),
            (lambda: client.create("named", radius=4), r"drop\(\) the collection first; .*resketch\(\) gives"),
        ]:
            with pytest.raises(lk.ServiceError, match=told) as refused:
                call()
            assert "/v1/collections/NAME" not in str(refused.value) and "`lookalike" not in str(refused.value)
        client.drop("named")


def test_fingerprints_and_schemes_of_the_package_were_refused(service):
    text = "a rose is a rose is a rose and a thorn is a thorn"
    scheme = lk.Scheme(shingle="words:3")
    with lk.Client(service) as client:
        assert "sketch=simhash:64" in client.create("of-package", scheme=scheme)["scheme"]
        client.insert("of-package", {"id": "a", "text": text})
        code = lk.simhash([text], scheme=scheme)[0]
        signed = code - (1 << 64) if code >> 63 else code
        documents = [{"fingerprint": given} for given in (code, signed, f"{code:016x}")]
        assert [answer["verdict"] for answer in client.check("of-package", documents)] == ["same-fingerprint"] * 3
        assert client.check("of-package", {"fingerprint": code})["verdict"] == "same-fingerprint"
        with pytest.raises(lk.ServiceError):
            client.check("of-package", {"fingerprint": 1 << 64})
        client.drop("of-package")


def test_documents_come_back_as_they_were_judged(service):
    with lk.Client(service) as client:
        client.create("pages", radius=3, keep=["texts"])
        text = "a rose is a rose is a rose and a thorn is a thorn"
        answers = client.check_and_insert("pages", [{"id": "a", "text": text}, {"id": "b", "text": text}, {"id": "c", "text": "other words"}])
        assert [answer["verdict"] for answer in answers] == ["new", "exact", "new"]
        assert client.check("pages", text)["verdict"] == "exact"
        assert client.check("pages", text.upper())["verdict"] == "same-fingerprint"
        assert client.query("pages", text, limit=1, verify=True)["neighbours"][0]["id"] == "a"
        assert client.insert("pages", {"id": "d", "text": "still others"})
        many = [{"id": f"m{at}", "text": f"text number {at} of many that are sent"} for at in range(250)]
        assert len(client.insert("pages", many)) == 250
        assert client.get("pages", "d")["id"] == "d"
        assert [bool(answer["existed"]) for answer in client.delete("pages", ["d", "nobody"])] == [True, False]
        assert {document["id"] for document in client.export("pages")} == {"a", "c", *(row["id"] for row in many)}
        next(client.export("pages"))
        assert client.show("pages")["radius"] == 3
        assert client.ready() and client.change("pages", 3600)["ttl_seconds"] == 3600
        assert client.expire("pages", "a", None) == {"existed": True}
        assert client.expire("pages", ["c", "nobody"], 60) == [{"existed": True}, {"existed": False}]
        exported = list(client.export("pages"))
        client.create("copy", keep=["texts"])
        assert client.load("copy", exported) == [{"replaced": False}] * len(exported)
        assert list(client.export("copy")) == exported
        client.drop("copy")
        client.drop("pages")
        with pytest.raises(lk.ServiceError) as refused:
            client.show("pages")
        assert refused.value.status == 404 and refused.value.code
        again = pickle.loads(pickle.dumps(refused.value))
        assert (again.status, again.code) == (404, refused.value.code)


def test_a_table_of_no_use_was_refused_without_the_name_of_its_field(service):
    with lk.Client(service) as client, pytest.raises(lk.ServiceError, match="no use for a table of terms: leave `terms` out") as refused:
        client.create("weightless", terms="")
    assert refused.value.field == "terms"
    assert pickle.loads(pickle.dumps(refused.value)).field == "terms"


def test_a_preset_is_a_scheme_and_a_radius(service):
    with lk.Client(service) as client:
        created = client.create("topic", preset="one-topic")
        assert (created["scheme"], created["radius"]) == (str(lk.Scheme(preset="one-topic")), 12)
        client.drop("topic")
        for beside in ({"radius": 3}, {"equal": 2}, {"scheme": lk.Scheme()}, {"terms": ""}):
            with pytest.raises(ValueError, match=f"leave {next(iter(beside))} out"):
                client.create("topic", preset="one-topic", **beside)
        with pytest.raises(ValueError, match="use one-topic"):
            client.create("topic", preset="news")


def test_lists_and_copies_by_chunks(service):
    texts = {"a": "one two three", "b": "one two three four", "c": "five six"}
    with lk.Client(service) as client:
        client.create("chunks", keep=["texts"])
        client.insert("chunks", [{"id": name, "text": text} for name, text in texts.items()])
        ranked = client.rerank("chunks", ["a", "b", {"text": "two three"}, "c"], chunk="words:1")
        assert [(row["was"], row["new_chunks"]) for row in ranked] == [(1, 3), (4, 2), (2, 1), (3, 0)]
        # A list of more documents than a batch of inserts may have is still ranked as one list.
        long = client.rerank("chunks", [{"text": f"text {at}"} for at in range(300)], chunk="words:1")
        assert [row["rank"] for row in long] == list(range(1, 301))
        found = client.copies_of("chunks", "a", chunk="words:1", min_shared=2)
        assert [(row["id"], row["shared"], row["containment"]) for row in found["copies"]] == [("b", 3, 1.0)]
        assert client.copies_of("chunks", {"text": "five"}, chunk="words:1")["copies"][0]["id"] == "c"
        with pytest.raises(lk.ServiceError, match="pages:1"):
            client.rerank("chunks", ["a"], chunk="pages:1")
        client.drop("chunks")


def test_the_asynchronous_client_answers_the_same(service):
    async def use() -> list[str]:
        client = lk.AsyncClient(service)
        await client.create("async")
        answers = await asyncio.gather(*(client.check_and_insert("async", {"id": f"{at}", "text": f"text {at} {at}"}) for at in range(20)))
        exported = [document["id"] async for document in client.export("async")]
        assert {answer["verdict"] for answer in answers} <= {"new", "near", "same-fingerprint"}
        await client.drop("async")
        return exported

    assert asyncio.run(use())


def test_a_busy_service_is_asked_again_and_a_closed_connection_opened_again():
    asked = []

    class Busy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked.append(self.headers.get("Authorization"))
            busy = len(asked) == 1
            self.send_response(503 if busy else 200)
            if busy:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")
            # Close without announcing it, as a service that is restarted does.
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = lk.Client(f"http://127.0.0.1:{server.server_port}", key="secret")
    assert client.collections() == [] and client.collections() == []
    assert asked == ["Bearer secret"] * 3
    asked.clear()
    impatient = lk.Client(f"http://127.0.0.1:{server.server_port}", retry_for=0)
    with pytest.raises(lk.ServiceError, match="503"):
        impatient.collections()
    server.shutdown()
    server.server_close()
    with pytest.raises(lk.LookalikeError, match="check that the service is running"):
        impatient.collections()


def test_what_is_no_service_or_no_document_is_refused():
    with pytest.raises(ValueError, match="URL"):
        lk.Client("localhost:7280")
    with pytest.raises(TypeError, match="not int"):
        lk.Client("http://127.0.0.1:9").check("pages", [1])


@contextlib.contextmanager
def answering(answer, *, port=0, tls=False):
    """Runs a service that answers each request with ``answer``, which gets the handler, and keeps connections open."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def reply(self, body: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
        # Shake hands in the thread of the request, because one that fails would end the server.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_an_answer_that_leads_elsewhere_was_a_success():
    def moved(handler):
        handler.reply(b"<html>moved</html>", 301, Location="https://elsewhere.example/v1")

    with answering(moved) as url, lk.Client(url) as client:
        for call in (lambda: client.drop("pages"), lambda: list(client.export("pages")), client.collections):
            with pytest.raises(lk.ServiceError, match="301: .*https://elsewhere.example/v1") as refused:
                call()
            assert refused.value.status == 301


def test_a_batch_that_was_perhaps_done_was_sent_again():
    asked = []

    def breaks(handler):
        asked.append(handler.path)
        if len(asked) % 2:
            handler.reply(b'[{"verdict": "new"}]')
        else:
            # The request may have been done, but there is no answer.
            handler.close_connection = True

    with answering(breaks) as url, lk.Client(url) as client:
        client.check_and_insert("pages", "a")
        with pytest.raises(lk.LookalikeError, match="connection broke before the answer"):
            client.check_and_insert("pages", "b")
        assert len(asked) == 2
        # Requests that can be repeated safely are sent again.
        client.check("pages", "c")
        client.check("pages", "d")
        assert len(asked) == 5


def test_a_connection_that_was_closed_meanwhile_is_opened_again_for_every_request():
    asked, closed = [], threading.Event()

    def closes(handler):
        asked.append(handler.path)
        handler.reply(b'[{"verdict": "new"}]')
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True
        closed.set()

    with answering(closes) as url, lk.Client(url) as client:
        for _ in range(3):
            closed.clear()
            assert client.check_and_insert("pages", "a") == {"verdict": "new"}
            assert closed.wait(10)
        assert len(asked) == 3


def test_texts_in_chinese_made_requests_of_six_times_the_limit():
    sizes = []

    def counts(handler):
        sizes.append(len(handler.body))
        handler.reply(json.dumps([{}] * len(json.loads(handler.body))).encode())

    documents = [{"id": str(at), "html": "河" * 100_000} for at in range(20)]
    with answering(counts) as url, lk.Client(url) as client:
        assert len(client.insert("pages", documents)) == 20
    assert max(sizes) <= (2 << 20) + 1000
    assert sum(sizes) == pytest.approx(20 * 300_000, rel=0.01)


def test_a_service_that_names_no_time_to_wait_was_asked_without_a_pause():
    asked = []

    def busy(handler):
        asked.append(handler.path)
        handler.reply(b"{}", 503, Retry_After="0")

    with answering(busy) as url, lk.Client(url, retry_for=1.05) as client:
        with pytest.raises(lk.ServiceError, match="503"):
            client.collections()
    assert 1 < len(asked) <= 11
    for wait in ("9" * 5000, "²"):
        with answering(lambda handler, wait=wait: handler.reply(b"{}", 503, Retry_After=wait)) as url, lk.Client(url) as client:
            with pytest.raises(lk.ServiceError, match="503"):
                client.collections()


def test_an_export_was_read_whole_before_its_first_document():
    sent = threading.Event()

    def endless(handler):
        if not handler.path.endswith("/export"):
            return handler.reply(b"[]")
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        with contextlib.suppress(OSError):
            for number in itertools.count():
                handler.wfile.write(json.dumps({"id": str(number), "text": "x" * 1000}).encode() + b"\n")
        sent.set()

    async def first(url: str) -> list[str]:
        client, found = lk.AsyncClient(url), []
        documents = client.export("pages")
        async for document in documents:
            found.append(document["id"])
            # Other requests use connections of their own.
            assert await client.collections() == []
            if len(found) == 250:
                break
        await documents.aclose()
        return found

    with answering(endless) as url:
        assert asyncio.run(asyncio.wait_for(first(url), 60)) == [str(at) for at in range(250)]
        # Closing the generator closes the connection.
        assert sent.wait(30)


def test_an_export_that_was_cut_off_between_chunks_ended_like_a_whole_one():
    line = b'{"id": "a"}\n'
    chunk = b"%x\r\n%s\r\n" % (len(line), line)

    def exporting(sent: bytes, length: int | None):
        def export(handler):
            handler.send_response(200)
            if length is None:
                handler.send_header("Transfer-Encoding", "chunked")
            else:
                handler.send_header("Content-Length", str(length))
            handler.end_headers()
            handler.wfile.write(sent)
            handler.close_connection = True

        return export

    async def exported(url: str) -> list[str]:
        async with lk.AsyncClient(url) as client:
            return [document["id"] async for document in client.export("pages")]

    # The last chunk, which is empty, says that the answer is complete. Chunks may end within a line.
    halves = b"5\r\n%s\r\n%x\r\n%s\r\n" % (line[:5], len(line) - 5, line[5:])
    for sent, length in ((chunk * 2 + b"0\r\n\r\n", None), (halves * 2 + b"0\r\n\r\n", None), (line * 2, 2 * len(line))):
        with answering(exporting(sent, length)) as url, lk.Client(url) as client:
            assert [document["id"] for document in client.export("pages")] == ["a", "a"]
            assert asyncio.run(exported(url)) == ["a", "a"]
    cut_off = ((chunk, None), (chunk + b"3", None), (chunk[:-2], None), (chunk + b"5\r\n" + line[:2], None), (line, 2 * len(line)))
    for sent, length in cut_off:
        with answering(exporting(sent, length)) as url, lk.Client(url) as client:
            with pytest.raises(lk.ServiceError, match="the export is incomplete"):
                list(client.export("pages"))
            with pytest.raises(lk.ServiceError, match="the export is incomplete"):
                asyncio.run(exported(url))


def test_a_request_between_the_documents_of_an_export_broke_it(service):
    with lk.Client(service) as client:
        client.create("between", keep=["texts"])
        client.insert("between", [{"id": f"{at}", "text": f"text {at} " * 50} for at in range(500)])
        found = []
        for document in client.export("between"):
            found.append(document["id"])
            assert client.get("between", document["id"])["id"] == document["id"]
        assert len(found) == 500
        client.drop("between")


#: State that a process inherits from the one that forked it.
before_fork = {}


def stored(id: str) -> str:
    return before_fork["client"].get("forked", id)["id"]


def test_a_client_that_was_used_before_a_fork_got_the_answers_of_other_documents(service):
    ids = [f"b{at}" for at in range(200)]
    with lk.Client(service) as client:
        client.create("forked", keep=["texts"])
        client.insert("forked", [{"id": id, "text": f"text {id}"} for id in ids])
        before_fork["client"] = client
        with multiprocessing.get_context("fork").Pool(4) as pool:
            assert pool.map(stored, ids, chunksize=5) == ids
        # The connection of this process still works.
        assert stored("b0") == "b0"
        client.drop("forked")


def test_an_export_that_began_before_a_fork_was_read_by_two_processes(service):
    with lk.Client(service) as client:
        client.create("halves", keep=["texts"])
        client.insert("halves", [{"id": f"{at}", "text": f"text {at} " * 500} for at in range(500)])
        documents = client.export("halves")
        found = [next(documents)]
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                next(documents)
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        found.extend(documents)
        assert len({document["id"] for document in found}) == 500
        client.drop("halves")


def test_a_refused_batch_hid_that_those_before_it_were_done(service):
    documents = [{"id": f"{at}", "text": f"text number {at} of some"} for at in range(150)]
    with lk.Client(service) as client:
        client.create("partly")
        with pytest.raises(lk.ServiceError, match=r"\(document 150\); the first 100 documents are done") as refused:
            client.check_and_insert("partly", [*documents, {"id": "150", "text": 5}])
        assert (refused.value.status, refused.value.document) == (422, 150)
        again = pickle.loads(pickle.dumps(refused.value))
        assert str(again) == str(refused.value)
        assert again.answers == refused.value.answers
        assert [answer["verdict"] for answer in again.answers][:1] == ["new"] and len(again.answers) == 100
        assert client.show("partly")["documents"] <= 100
        # An item that is not a document is found before its batch is sent.
        with pytest.raises(TypeError, match="not int") as wrong:
            client.check("partly", [*(document["text"] for document in documents), 5])
        assert len(wrong.value.answers) == 100
        client.drop("partly")


def test_a_connection_that_broke_hid_that_batches_before_were_done():
    asked = []

    def breaks(handler):
        asked.append(handler.path)
        if len(asked) == 1:
            handler.reply(b"[" + b",".join([b'{"verdict": "new"}'] * 100) + b"]")
        else:
            handler.close_connection = True

    with answering(breaks) as url, lk.Client(url) as client:
        with pytest.raises(lk.ServiceError, match="connection broke .* first 100 documents are done") as broken:
            client.check_and_insert("pages", [f"text {at}" for at in range(250)])
        assert broken.value.status == 0 and len(broken.value.answers) == 100


def test_a_body_above_the_limit_was_a_broken_pipe(service):
    with lk.Client(service) as client:
        client.create("large")
        for size in (1, 33 << 20, 70 << 20):
            with pytest.raises(lk.ServiceError) as refused:
                client.insert("large", [{"text": 5, "id": "x" * size}])
            assert refused.value.status == (422 if size == 1 else 413), str(refused.value)[:1000]
        assert client.check("large", "a text of some words")["verdict"] == "new"
        client.drop("large")


def test_a_cancelled_call_sent_all_its_documents():
    asked, begun, answer = [], threading.Event(), threading.Event()

    def waits(handler):
        asked.append(handler.path)
        begun.set()
        answer.wait(30)
        handler.reply(json.dumps([{}] * len(json.loads(handler.body))).encode())

    async def give_up(url: str) -> None:
        async with lk.AsyncClient(url) as client:
            call = asyncio.create_task(client.insert("pages", [f"text {at}" for at in range(1000)]))
            await asyncio.to_thread(begun.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            # Other calls are not cancelled with it.
            answer.set()
            assert len(await client.insert("pages", [f"text {at}" for at in range(150)])) == 150

    with answering(waits) as url:
        # The event loop ends only after the thread of the call.
        asyncio.run(give_up(url))
    assert len(asked) == 1 + 2


def test_a_cancelled_call_went_on_to_ask_a_busy_service():
    asked, begun = [], threading.Event()

    def busy(handler):
        asked.append(handler.path)
        handler.reply(b"{}", 503, Retry_After="1000")
        begun.set()

    async def give_up(url: str) -> None:
        async with lk.AsyncClient(url, retry_for=10_000) as client:
            call = asyncio.create_task(client.collections())
            await asyncio.to_thread(begun.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    with answering(busy) as url:
        asyncio.run(asyncio.wait_for(give_up(url), 60))
    assert len(asked) == 1


def test_an_asynchronous_client_left_connections_open(service):
    async def use() -> None:
        async with lk.AsyncClient(service) as client:
            await asyncio.gather(*(client.collections() for _ in range(20)))

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(use())
        gc.collect()
    assert [str(one.message) for one in warned if one.category is ResourceWarning] == []


def test_one_word_was_taken_for_a_list_of_letters(service):
    with lk.Client(service) as client:
        client.create("words", keep="texts")
        client.insert("words", {"id": "19", "text": "nineteen words"})
        assert next(client.export("words"))["text"] == "nineteen words"
        with pytest.raises(TypeError, match="must be a list, not str"):
            client.rerank("words", "19")
        client.drop("words")


def test_a_key_with_the_end_of_its_line_was_printed():
    with answering(lambda handler: handler.reply(json.dumps(handler.headers["Authorization"]).encode())) as url:
        with lk.Client(url, key="secret\n") as client:
            assert client.collections() == "Bearer secret"
        for key in ("secret\nother", "s\u00e9cret"):
            with pytest.raises(ValueError) as refused:
                lk.Client(url, key=key)
            assert "cret" not in str(refused.value)


def test_documents_with_ids_could_not_be_checked(service):
    client = lk.Client(service)
    client.create("named")
    rose = {"id": "r", "text": "a rose is a rose is a rose", "metadata": {"n": 1}, "ttl_seconds": 60}
    client.insert("named", rose)
    assert client.check("named", {"text": rose["text"], "expires_ms": None})["verdict"] == "exact"
    assert client.check("named", rose)["verdict"] == "exact"
    assert client.query("named", [rose, {"id": "n", "text": "something else"}])[0]["copy_of"] == "r"
    assert [answer["verdict"] for answer in client.check("named", iter([rose, "something else"]))] == ["exact", "new"]
    assert rose["id"] == "r"
    with pytest.raises(TypeError, match="documents must be str or dict, not list"):
        client.check("named", [["nested"]])


def test_the_columns_of_a_frame_were_taken_for_documents(service):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    texts = [f"text number {at} of a frame, and no other" for at in range(4)]
    with lk.Client(service) as client:
        client.create("frames")
        columns = {"id": ["0", "1", "2", "3"], "text": texts}
        client.insert("frames", pd.DataFrame(columns))
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), pd.Series(texts), pl.Series(texts), pa.array(texts), pa.chunked_array([texts])):
            assert [answer["verdict"] for answer in client.check("frames", frame)] == ["exact"] * 4, type(frame)
        for ids in (pd.Series(["1"]), pl.Series(["1"]), pa.array(["1"])):
            assert [found["id"] for found in client.get("frames", ids)] == ["1"]
        for ids in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), {"1": 1}):
            with pytest.raises(TypeError, match="ids must be a str, or several"):
                client.delete("frames", ids)
        assert len(client.get("frames", ["0", "1", "2", "3"])) == 4


def test_a_client_that_was_used_could_not_be_pickled(service):
    with lk.Client(service) as client:
        client.ready()
        with pickle.loads(pickle.dumps(client)) as copy:
            copy.ready()
            assert copy.url == client.url


def test_one_value_that_is_not_json_had_its_whole_batch_refused_without_its_position():
    import numpy as np
    import pandas as pd

    def counts(handler):
        handler.reply(json.dumps([{}] * len(json.loads(handler.body))).encode())

    wrong = (
        ({"text": "a \ud800 b"}, "one half of a pair of surrogates"),
        ({"text": float("nan")}, "not JSON"),
        ({"text": "a", "metadata": np.int64(5)}, "int64"),
        ({"text": "a", "metadata": pd.Timestamp(0)}, "Timestamp"),
    )
    with answering(counts) as url, lk.Client(url) as client:
        for document, told in wrong:
            with pytest.raises(lk.BadInput, match=f"^document 150: .*{told}") as refused:
                client.insert("pages", ["text"] * 150 + [document])
            assert (refused.value.row, len(refused.value.answers)) == (150, 100)
            with pytest.raises(lk.BadInput, match=told):
                client.insert("pages", document)
            with pytest.raises(lk.BadInput, match=f"^document 1: .*{told}"):
                client.rerank("pages", ["a", document])


def test_lifetimes_of_a_column_with_a_missing_value_arrived_as_floats():
    import pandas as pd
    import polars as pl

    def echoes(handler):
        handler.reply(handler.body)

    documents = [{"id": "a", "text": "a", "ttl_seconds": 5}, {"id": "b", "text": "b", "ttl_seconds": None}]
    with answering(echoes) as url, lk.Client(url) as client:
        frame = pd.DataFrame(documents)
        for data in (frame, pl.DataFrame(documents), documents, frame.to_dict("records")):
            sent = client.insert("pages", data)
            assert [(type(item.get("ttl_seconds")), item.get("ttl_seconds")) for item in sent] == [(int, 5), (type(None), None)]
        assert type(client.insert("pages", frame.to_dict("records")[0])["ttl_seconds"]) is int


def test_texts_and_snapshots_are_there_for_both_clients(service):
    async def asked() -> list[object]:
        async with lk.AsyncClient(service) as client:
            return [await client.get("kept", ["a", "nobody"], text=True), await client.snapshot("second")]

    with lk.Client(service) as client:
        client.create("kept", keep="texts")
        client.insert("kept", [{"id": "a", "text": "A rose"}, {"id": "b", "text": "is a rose"}])
        assert "text" not in client.get("kept", "a")
        assert (client.get("kept", "a", text=True)["text"], client.get("kept", "nobody", text=True)) == ("A rose", None)
        found = client.get("kept", ["b", "nobody", "a"], text=True)
        assert [document and document["text"] for document in found] == ["is a rose", None, "A rose"]
        with pytest.raises(lk.ServiceError, match="404"):
            client.get("nowhere", "a", text=True)
        first = client.snapshot("first")
        assert first["name"] == "first" and first["collections"] >= 1
        with pytest.raises(lk.ServiceError, match="choose another name"):
            client.snapshot("first")
        (document, nothing), second = asyncio.run(asked())
        assert (document["text"], nothing, second["name"]) == ("A rose", None, "second")
        client.drop("kept")


def test_a_search_for_copies_had_no_more_time_than_a_lookup():
    with answering(lambda handler: handler.reply(b"[{}]")) as url, lk.Client(url) as client:
        def limit(ask):
            ask()
            return client._idle.connections[0].sock.gettimeout()

        # The requests share a connection.
        assert limit(lambda: client.get("pages", "a")) == 60
        assert limit(lambda: client.copies_of("pages", "a")) is None
        assert limit(lambda: client.get("pages", "a")) == 60
        assert limit(lambda: client.snapshot("monday")) is None


def test_wrong_schemes_and_unknown_certificates_were_told_as_a_service_that_does_not_run(tmp_path):
    def alert(handler):
        handler.wfile.write(b"\x15\x03\x03\x00\x02\x02\x32")
        handler.close_connection = True

    with answering(alert) as url:
        with pytest.raises(lk.ServiceError, match="begin with https://$"):
            lk.Client(url).collections()
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse():
            with plain.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=refuse).start()
        with pytest.raises(lk.ServiceError, match="begin with http://$"):
            lk.Client(f"https://127.0.0.1:{plain.getsockname()[1]}").collections()
    with answering(lambda handler: handler.reply(b"[]"), tls=True) as url:
        with pytest.raises(lk.ServiceError, match="certificate.*: trust the certificate with ca="):
            lk.Client(url).collections()
        assert lk.Client(url, ca=TLS / "ca.pem").collections() == []
        with pytest.raises(FileNotFoundError, match="nowhere.pem"):
            lk.Client(url, ca="nowhere.pem")
        nothing = tmp_path / "nothing.pem"
        nothing.write_text("not a certificate")
        with pytest.raises(ValueError, match="nothing.pem' has no readable certificate"):
            lk.Client(url, ca=nothing)


def test_a_restart_of_the_service_failed_the_calls_of_running_clients():
    asked = []

    def answer(handler):
        asked.append(handler.path)
        handler.reply(json.dumps([{}] * len(json.loads(handler.body))).encode())
        handler.close_connection = True

    # A socket that is bound but does not listen refuses connections, and no other process gets its port.
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with answering(answer, port=port) as url:
            client = lk.Client(url)
            client.check_and_insert("pages", "a")
        again = threading.Timer(1, lambda: restarted.enter_context(answering(answer, port=port)))
        with contextlib.ExitStack() as restarted:
            again.start()
            assert client.check_and_insert("pages", ["b", "c"]) == [{}, {}]
            again.join()
        assert len(asked) == 2
        # It ends after the time for retries, and a wrong URL at once.
        for impatient in (lk.Client(url), pickle.loads(pickle.dumps(client))):
            impatient._retry_for = 1.5 if impatient._has_answered else 1000
            with pytest.raises(lk.ServiceError, match="check that the service is running"):
                impatient.check("pages", "a")
        with pytest.raises(lk.ServiceError, match="check that the service is running"):
            client.ready()
