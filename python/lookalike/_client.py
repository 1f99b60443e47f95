"""A client of the service that needs only the standard library."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from lookalike._errors import LookalikeError

__all__ = ["AsyncClient", "Client", "ServiceError"]

#: Documents and bytes of one request.
_BATCH = 100
_BATCH_BYTES = 2 << 20
_TIMEOUT = 60.0
#: Least pause before a busy service is asked again, in seconds.
_PAUSE = 0.1


class ServiceError(LookalikeError):
    """A request that the service refused. ``status`` is the HTTP status, ``code`` the service's code for the reason."""

    __module__ = "lookalike"

    def __init__(self, message: str = "", status: int = 0, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.status, self.code)


class Client:
    """Connection to a service that ``lookalike serve`` runs.

    Documents are texts, or dicts with ``text`` (or ``fingerprint``) and ``id``; answers are dicts in the order of the documents. Documents
    are sent in batches of a suitable size. If the service is busy, requests are retried after the time that it names, for at most
    ``retry_for`` seconds.

    Threads may share a client; each has its own connection.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7280",
        key: str | None = None,
        *,
        retry_for: float = 60.0,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a service: write for example http://127.0.0.1:7280")
        self.url = url.rstrip("/")
        self._parts = parts
        self._key = key if key is not None else os.environ.get("LOOKALIKE_KEY") or None
        self._retry_for = retry_for
        self._ca = ca
        # `http.client` connections are of one request at a time.
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<lookalike.Client of {self.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    # Collections

    def create(self, collection: str, **options: Any) -> dict[str, Any]:
        """Create a collection with the options ``radius`` (of fingerprints) or ``equal`` (the fewest super-shingles or minima in common, a number or a share such as 0.8), ``ttl_seconds``, ``scheme``, ``terms`` (a table in base64), ``boilerplate`` (learned lines in base64), ``keep`` (text hashes, texts, signatures, paragraphs), ``within`` or ``across``, and ``lengths``.

        ``paragraphs`` says what ends a paragraph: ``auto``, ``blank`` (lines) or ``lines``. The answer has ``recall``: the share of near-duplicates that the collection finds, by their resemblance.
        """
        body = {name: value for name, value in options.items() if value is not None}
        if "scheme" in body:
            body["scheme"] = str(body["scheme"])
        if "keep" in body and not isinstance(body["keep"], Mapping):
            body["keep"] = dict.fromkeys(body["keep"], True)
        return self._json("PUT", self._path(collection), body)  # type: ignore[no-any-return]

    def collections(self) -> Any:
        """All collections."""
        return self._json("GET", "/v1/collections")

    def show(self, collection: str) -> dict[str, Any]:
        """Settings and counts of a collection."""
        return self._json("GET", self._path(collection))  # type: ignore[no-any-return]

    def drop(self, collection: str) -> Any:
        """Delete a collection with everything in it."""
        return self._json("DELETE", self._path(collection))

    def change(self, collection: str, ttl_seconds: int | None) -> dict[str, Any]:
        """Change the lifetime of documents inserted from now on; ``None`` means forever."""
        return self._json("PATCH", self._path(collection), {"ttl_seconds": ttl_seconds})  # type: ignore[no-any-return]

    def compact(self, collection: str) -> dict[str, Any]:
        """Merge all documents into one run in the background."""
        return self._json("POST", self._path(collection, "compact"))  # type: ignore[no-any-return]

    def resketch(self, collection: str, **options: Any) -> dict[str, Any]:
        """Make new sketches of all documents from the texts that the collection keeps, in the background; options are ``scheme``, ``terms`` (a table in base64), ``radius`` and ``equal``.

        ``resketching`` in the answer of ``show`` says that the job is running, or why it failed. The collection changes in one step at the end.
        """
        body = {name: value for name, value in options.items() if value is not None}
        if "scheme" in body:
            body["scheme"] = str(body["scheme"])
        return self._json("POST", self._path(collection, "resketch"), body)  # type: ignore[no-any-return]

    def cancel_resketch(self, collection: str) -> dict[str, Any]:
        """Cancel the job that sketches a collection anew, or forget why it failed: the collection stays as it was."""
        return self._json("DELETE", self._path(collection, "resketch"))  # type: ignore[no-any-return]

    def ready(self) -> bool:
        """Check whether all collections are open and writable."""
        try:
            return self._json("GET", "/readyz")["status"] == "ready"  # type: ignore[no-any-return]
        except ServiceError as refused:
            if refused.status == 503:
                # Only this: that a service is away, or refuses the key, is no answer to the question.
                return False
            raise

    # Documents

    def check(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which documents were seen before: verdicts only.

        ``exact``: a document has the same text. ``same-fingerprint``: one has the same fingerprint, or all super-shingles or minima, but no known text is the same.
        ``near``: one is within the radius, or has enough of these in common (``equal``). ``new``: none is.
        """
        return self._documents(collection, "check", documents, options)

    def query(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which documents were seen before, with their neighbours; options are ``radius``, ``limit``, ``verify``, ``diff``.

        For neighbours beyond the limit, query the same document again with ``after`` set to ``next`` of the answer.
        """
        return self._documents(collection, "query", documents, options)

    def insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """Insert documents; each replaces a stored one with the same id."""
        return self._documents(collection, "insert", documents, options)

    def check_and_insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check documents and insert them, in one step.

        ``insert`` is ``new`` (the default), ``not-same-fingerprint``, ``not-exact`` (no document has the same text) or ``always``.
        """
        return self._documents(collection, "check-and-insert", documents, options)

    def paragraphs(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which paragraphs were seen before, the same or similar, and the share of each page that is known; options are ``radius``, ``limit``."""
        return self._documents(collection, "paragraphs", documents, options)

    def rerank(self, collection: str, documents: Any, *, chunk: str = "lines:2") -> Any:
        """Order a list of documents by how much is new in each. They are ids of stored documents, or objects with ``id``, ``text`` or ``html``.

        ``chunk`` is as in :func:`lookalike.overlap`.
        """
        items = [{"id": item} if isinstance(item, str) else item for item in documents]
        return self._json("POST", self._asking(collection, "rerank", {"chunk": chunk}), items)

    def copies_of(self, collection: str, document: Any, **options: Any) -> Any:
        """Find the documents that share chunks with one, by containment, highest first. ``document`` is an id, or an object as for :meth:`rerank`.

        For ``chunk``, ``min_shared``, ``min_containment`` and ``limit`` see the service.
        """
        item = {"id": document} if isinstance(document, str) else document
        return self._json("POST", self._asking(collection, "copies-of", options), item)

    def get(self, collection: str, ids: Any) -> Any:
        """The documents with these ids."""
        return self._documents(collection, "get", _ids(ids), {})

    def delete(self, collection: str, ids: Any) -> Any:
        """Delete documents by id, and report which existed."""
        return self._documents(collection, "delete", _ids(ids), {})

    def expire(self, collection: str, ids: Any, ttl_seconds: int | None) -> Any:
        """Change the expiry of documents by id, and report which existed; ``None`` means never."""
        end = {"expires_ms": None} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}
        items = _ids(ids)
        items = {**items, **end} if isinstance(items, dict) else [{**item, **end} for item in items]
        return self._documents(collection, "expire", items, {})

    def load(self, collection: str, documents: Any, **options: Any) -> Any:
        """Insert documents returned by :meth:`export`, unchanged; each answer says which parts were ``dropped``."""
        return self._documents(collection, "load", documents, options)

    def export(self, collection: str) -> Iterator[dict[str, Any]]:
        """All documents with all their parts, one after another."""
        response = self._send("GET", self._path(collection, "export"), None)
        # Its own from here on: other requests of this thread may come in between, and what is not read cannot be skipped.
        connection, self._local.connection = self._local.connection, None
        try:
            for line in response:
                if line.strip():
                    yield json.loads(line)
        finally:
            connection.close()

    def _path(self, collection: str, operation: str = "") -> str:
        from urllib.parse import quote

        path = "/v1/collections/" + quote(collection, safe="")
        return f"{path}/{operation}" if operation else path

    def _asking(self, collection: str, operation: str, options: Mapping[str, Any]) -> str:
        """The path of an operation, with its options."""
        from urllib.parse import urlencode

        path = self._path(collection, operation)
        said = {name: _word(value) for name, value in options.items() if value is not None}
        return f"{path}?{urlencode(said)}" if said else path

    def _documents(self, collection: str, operation: str, documents: Any, options: Mapping[str, Any]) -> Any:
        path = self._asking(collection, operation, options)
        # One document, one answer. As a list of one, for the answer then has the form that all others have.
        if isinstance(documents, (str, Mapping)):
            return self._json("POST", path, [_item(documents)])[0]
        answers: list[Any] = []
        for batch in _batches(documents):
            answers.extend(_read(self._send("POST", path, batch)))
        return answers

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return _read(self._send(method, path, None if body is None else _encoded(body)))

    def _send(self, method: str, path: str, sent: bytes | None) -> Any:
        headers = {"Content-Type": "application/json"} if sent is not None or method == "POST" else {}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        begun = time.monotonic()
        # The body is made once, and the same bytes are sent again: an iterator of documents is used up by then.
        while True:
            response = self._once(method, path, sent, headers)
            if 200 <= response.status < 300:
                return response
            refusal = response.read()
            if response.status < 400:
                # Nothing was done. It is not followed: the key is for this address.
                raise _moved(f"{self.url}{path}", response.status, response.headers.get("Location"))
            wait = response.headers.get("Retry-After", "")
            # HTTP allows a date, too; the service writes seconds. Refusals without the header are final: the
            # same request is refused again.
            pause = max(int(wait), _PAUSE) if wait.isascii() and wait.isdigit() and len(wait) < 10 else None
            if pause is None or time.monotonic() - begun + pause >= self._retry_for:
                raise _refused(f"{self.url}{path}", response.status, refusal)
            time.sleep(pause)

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        import http.client

        prefix = self._parts.path.rstrip("/")
        if _is_closed(getattr(self._local, "connection", None)):
            self.close()
        # Repeated after it was done, the verdicts would be about the documents themselves.
        is_repeatable = not path.partition("?")[0].endswith("/check-and-insert")
        # First the kept connection, if there is one; then at most one new one.
        for is_kept in (True, False):
            connection = getattr(self._local, "connection", None) if is_kept else None
            if connection is None:
                if is_kept:
                    continue
                connection = self._local.connection = self._connect()
            try:
                connection.request(method, prefix + path, body, headers)
                return connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A connection that was kept may have been closed meanwhile, before the service saw anything of the request, or
                # after it was done: nobody can tell.
                closed = isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError))
                if is_kept and closed and not is_repeatable:
                    raise LookalikeError(
                        f"{self.url}{path}: the connection broke before the answer: some of the documents may be inserted, so look "
                        "for them with get before you send them again"
                    ) from error
                if not (is_kept and closed):
                    raise LookalikeError(
                        f"{self.url}{path}: {error or type(error).__name__}: check that the service is running"
                    ) from error
        raise AssertionError("the second attempt returns or raises")

    def _connect(self) -> Any:
        import http.client

        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host or "", port, timeout=_TIMEOUT)
        import ssl

        trusted = ssl.create_default_context(cafile=None if self._ca is None else os.fspath(self._ca))
        return http.client.HTTPSConnection(host or "", port, timeout=_TIMEOUT, context=trusted)


class AsyncClient:
    """The same operations for ``asyncio``: each runs on a thread of the loop's pool, so the loop is never blocked."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._client = Client(*arguments, **named)

    def __repr__(self) -> str:
        return f"<lookalike.AsyncClient of {self._client.url}>"

    async def create(self, collection: str, **options: Any) -> dict[str, Any]:
        """See :meth:`Client.create`."""
        return await self._call(self._client.create, collection, **options)  # type: ignore[no-any-return]

    async def collections(self) -> Any:
        """See :meth:`Client.collections`."""
        return await self._call(self._client.collections)

    async def show(self, collection: str) -> dict[str, Any]:
        """See :meth:`Client.show`."""
        return await self._call(self._client.show, collection)  # type: ignore[no-any-return]

    async def drop(self, collection: str) -> Any:
        """See :meth:`Client.drop`."""
        return await self._call(self._client.drop, collection)

    async def change(self, collection: str, ttl_seconds: int | None) -> dict[str, Any]:
        """See :meth:`Client.change`."""
        return await self._call(self._client.change, collection, ttl_seconds)  # type: ignore[no-any-return]

    async def compact(self, collection: str) -> dict[str, Any]:
        """See :meth:`Client.compact`."""
        return await self._call(self._client.compact, collection)  # type: ignore[no-any-return]

    async def resketch(self, collection: str, **options: Any) -> dict[str, Any]:
        """See :meth:`Client.resketch`."""
        return await self._call(self._client.resketch, collection, **options)  # type: ignore[no-any-return]

    async def cancel_resketch(self, collection: str) -> dict[str, Any]:
        """See :meth:`Client.cancel_resketch`."""
        return await self._call(self._client.cancel_resketch, collection)  # type: ignore[no-any-return]

    async def ready(self) -> bool:
        """See :meth:`Client.ready`."""
        return await self._call(self._client.ready)  # type: ignore[no-any-return]

    async def check(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.check`."""
        return await self._call(self._client.check, collection, documents, **options)

    async def query(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.query`."""
        return await self._call(self._client.query, collection, documents, **options)

    async def insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.insert`."""
        return await self._call(self._client.insert, collection, documents, **options)

    async def check_and_insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.check_and_insert`."""
        return await self._call(self._client.check_and_insert, collection, documents, **options)

    async def paragraphs(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.paragraphs`."""
        return await self._call(self._client.paragraphs, collection, documents, **options)

    async def rerank(self, collection: str, documents: Any, *, chunk: str = "lines:2") -> Any:
        """See :meth:`Client.rerank`."""
        return await self._call(self._client.rerank, collection, documents, chunk=chunk)

    async def copies_of(self, collection: str, document: Any, **options: Any) -> Any:
        """See :meth:`Client.copies_of`."""
        return await self._call(self._client.copies_of, collection, document, **options)

    async def get(self, collection: str, ids: Any) -> Any:
        """See :meth:`Client.get`."""
        return await self._call(self._client.get, collection, ids)

    async def delete(self, collection: str, ids: Any) -> Any:
        """See :meth:`Client.delete`."""
        return await self._call(self._client.delete, collection, ids)

    async def expire(self, collection: str, ids: Any, ttl_seconds: int | None) -> Any:
        """See :meth:`Client.expire`."""
        return await self._call(self._client.expire, collection, ids, ttl_seconds)

    async def load(self, collection: str, documents: Any, **options: Any) -> Any:
        """See :meth:`Client.load`."""
        return await self._call(self._client.load, collection, documents, **options)

    async def export(self, collection: str) -> AsyncIterator[dict[str, Any]]:
        """See :meth:`Client.export`."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        from itertools import islice

        documents = self._client.export(collection)
        # One thread, in which it can be closed behind a batch that is still read when the loop has given it up.
        reader = ThreadPoolExecutor(1)
        try:
            loop = asyncio.get_running_loop()
            # A few at a time: a collection need not fit into memory.
            while batch := await loop.run_in_executor(reader, lambda: list(islice(documents, _BATCH))):
                for document in batch:
                    yield document
        finally:
            reader.submit(documents.close)  # type: ignore[attr-defined]
            reader.shutdown(wait=False)

    async def _call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        import asyncio

        return await asyncio.to_thread(function, *arguments, **named)


def _item(document: Any) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, Mapping):
        return dict(document)
    raise TypeError(f"documents must be str or dict, not {type(document).__name__}")


def _ids(ids: Any) -> Any:
    return {"id": ids} if isinstance(ids, str) else [{"id": id} for id in ids]


def _batches(documents: Iterable[Any]) -> Iterator[bytes]:
    """Batches of documents, as JSON arrays ready to send."""
    batch: list[bytes] = []
    size = 0
    for document in documents:
        item = _encoded(_item(document))
        # A document above the limit goes alone: whether it is too large is for the service to say.
        if batch and (len(batch) == _BATCH or size + len(item) > _BATCH_BYTES):
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield b"[" + b",".join(batch) + b"]"


def _encoded(value: Any) -> bytes:
    try:
        # As UTF-8, not as escapes, which take six bytes for each Chinese character.
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # A lone surrogate, which the service refuses by its item.
        return json.dumps(value).encode()


def _read(response: Any) -> Any:
    read = response.read()
    return json.loads(read) if read else None


def _is_closed(connection: Any) -> bool:
    """True if the other side has ended an idle connection: it has closed it, or sent data that nobody requested."""
    import select

    if connection is None or connection.sock is None:
        return False
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return bool(waiting.poll(0))


def _moved(url: str, status: int, location: str | None) -> ServiceError:
    told = "the service is not here" if location is None else f"the service is not here but at {location!r}: use the URL of that one"
    return ServiceError(f"{url}: {status}: {told}", status)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(url: str, status: int, body: bytes) -> ServiceError:
    try:
        problem = json.loads(body)
    # A proxy before the service answers in HTML.
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    detail = problem.get("detail") or "refused"
    if problem.get("item") is not None:
        detail += f" (item {problem['item']} of the batch)"
    remedy = problem.get("remedy")
    message = f"{url}: {status}: {detail}" + (f": {remedy}" if remedy else "")
    return ServiceError(message, status, problem.get("code"))
