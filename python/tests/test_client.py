"""The client, against a service of the same wheel, and against one that misbehaves."""

from __future__ import annotations

import asyncio
import http.server
import pickle
import threading

import pytest
from services import running_service

import lookalike as lk


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("service") / "store") as url:
        yield url


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


def test_lists_and_copies_by_chunks(service):
    texts = {"a": "one two three", "b": "one two three four", "c": "five six"}
    with lk.Client(service) as client:
        client.create("chunks", keep=["texts"])
        client.insert("chunks", [{"id": name, "text": text} for name, text in texts.items()])
        ranked = client.rerank("chunks", ["a", "b", {"text": "two three"}, "c"], chunk="words:1")
        assert [(row["was"], row["new_chunks"]) for row in ranked] == [(1, 3), (4, 2), (2, 1), (3, 0)]
        # More documents than a batch of inserts has stay one list.
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
            # Says nothing about it, as a service that is restarted does.
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
