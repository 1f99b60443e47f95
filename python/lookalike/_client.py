"""A client of the service that needs only the standard library."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from time import monotonic
from typing import Any

from lookalike._errors import BadInput, LookalikeError

__all__ = ["AsyncClient", "Client", "ServiceError"]

#: Maximum number of documents, and maximum number of bytes, in one request.
_BATCH = 100
_BATCH_BYTES = 2 << 20
#: Maximum time in seconds without an answer. None, for operations that read whole collections, waits as long as the service works.
_TIMEOUT = 60.0
#: Maximum number of bytes of an export that are read at once.
_PIECE = 1 << 16
#: Minimum pause in seconds before a busy service is asked again.
_PAUSE = 0.1
#: Pause in seconds after a refused connection.
_REFUSED_PAUSE = 0.5
#: What this client calls the remedies that the service states as requests or commands, by the code of the problem.
_REMEDIES = {
    "no-collection": "create() it; collections() lists them",
    "exists": "choose another name, or drop() the collection first; with texts kept, resketch() gives it another scheme, table of terms or radius",
    "other-scheme": "make the sketches with the collection's scheme, which show() has, or insert the texts",
}
#: Set once the caller no longer waits for the call.
_given_up: ContextVar[threading.Event | None] = ContextVar("_given_up", default=None)


def _without_preset(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the preset in the settings of a collection by the scheme and the radius that it stands for."""
    preset = body.pop("preset", None)
    if preset is None:
        return body
    from lookalike._lookalike import Scheme, preset_distance

    beside = [name for name in ("radius", "equal", "scheme", "terms") if name in body]
    if beside:
        raise ValueError(f"preset={preset!r} gives scheme and radius: leave {' and '.join(beside)} out, or the preset")
    return {**body, "scheme": Scheme(preset=preset), "radius": preset_distance(preset)}


def _with_scheme_text(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the scheme in the settings of a collection by its text. A scheme without a sketch makes fingerprints, as in ``simhash``."""
    if "scheme" not in body:
        return body
    parts = ("sketch=simhash:64" if part == "sketch=none" else part for part in str(body["scheme"]).split(" "))
    return {**body, "scheme": " ".join(parts)}


class ServiceError(LookalikeError):
    """The service refused a request, or did not answer. ``status`` is the HTTP status (0 without an answer), ``code`` the service's code for the reason,
    ``field`` the setting of a collection that is missing or wrong, if it is one.

    For a call with many documents, ``document`` is the position of the refused one, counted from 0, if the service names one. ``answers`` are
    the answers to the documents of earlier requests, which have been carried out.
    """

    __module__ = "lookalike"

    def __init__(
        self, message: str = "", status: int = 0, code: str | None = None, *, document: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.document = document
        self.field = field
        self.answers: list[Any] = []

    def __str__(self) -> str:
        message = super().__str__()
        if self.document is not None:
            message += f" (document {self.document})"
        if self.answers:
            message += f"; the first {len(self.answers)} documents are done: the exception has their answers"
        return message

    def __reduce__(self):
        return type(self), (*self.args, self.status, self.code), {"document": self.document, "field": self.field, "answers": self.answers}


class Client:
    """Connection to a service that ``lookalike serve`` runs.

    Documents are texts, or dicts with ``text`` (or ``fingerprint``, as :func:`lookalike.simhash` makes it) and ``id``. :meth:`check` and :meth:`query` ignore the ``id`` and what is only stored: they also
    find a stored document with the same id. Answers are dicts in the order of the documents. Documents
    are sent in batches of a suitable size. If the service is busy, requests are retried after the time that it names, for at most
    ``retry_for`` seconds. So are requests whose connection is refused, as during a restart, once the service has answered this client: a
    wrong URL is an error at once.

    If a call fails after some batches, the exception has ``answers``, for the documents that were already processed. A document that is not
    JSON, such as one with NaN or half of a pair of surrogates, raises :class:`BadInput` with its ``row``, and its batch is not sent.

    ``url`` and ``key`` default to the environment variables ``LOOKALIKE_URL`` and ``LOOKALIKE_KEY``; without the former, the service is
    ``http://127.0.0.1:7280``.

    Threads may share a client, and so may forked processes: requests never share a connection.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        retry_for: float = 60.0,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        from urllib.parse import urlsplit

        if url is None:
            url = os.environ.get("LOOKALIKE_URL") or "http://127.0.0.1:7280"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a service: write for example http://127.0.0.1:7280")
        self.url = url.rstrip("/")
        self._parts = parts
        self._key = _checked(key if key is not None else os.environ.get("LOOKALIKE_KEY"))
        self._retry_for = retry_for
        self._ca = ca
        self._has_answered = False
        if ca is not None:
            # Otherwise the first request would fail instead.
            _trusting(ca)
        self._idle = _IdleConnections()

    def __getstate__(self) -> dict[str, Any]:
        # Connections are not copied: the copy opens its own.
        return {name: value for name, value in self.__dict__.items() if name != "_idle"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _idle=_IdleConnections())

    def __repr__(self) -> str:
        return f"<lookalike.Client of {self.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections: idle ones at once, those of running requests when the requests end."""
        idle, self._idle = self._idle, _IdleConnections()
        idle.close()

    # Collections

    def create(self, collection: str, **options: Any) -> dict[str, Any]:
        """Create a collection. Options are ``radius`` (of fingerprints) or ``equal`` (the minimum number of super-shingles or minima in common, or a share such as 0.8), ``ttl_seconds``, ``scheme``, ``terms`` (a table in base64), ``boilerplate`` (learned lines in base64), ``keep`` (text hashes, texts, signatures, paragraphs), ``within`` or ``across``, and ``lengths``.

        A ``scheme`` without a sketch makes fingerprints of 64 bits, as in ``simhash``. ``preset="one-topic"`` sets scheme and radius for pages of a focused crawl; together with ``radius``, ``equal``, ``scheme`` or ``terms`` it raises ``ValueError``.
        ``paragraphs`` says what ends a paragraph: ``auto``, ``blank`` (lines) or ``lines``. The answer has ``recall``: the share of near-duplicates that the collection finds, by their resemblance.
        """
        body = _with_scheme_text(_without_preset({name: value for name, value in options.items() if value is not None}))
        if "keep" in body and not isinstance(body["keep"], Mapping):
            kept = body["keep"]
            body["keep"] = dict.fromkeys([kept] if isinstance(kept, str) else kept, True)
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
        body = _with_scheme_text({name: value for name, value in options.items() if value is not None})
        return self._json("POST", self._path(collection, "resketch"), body)  # type: ignore[no-any-return]

    def cancel_resketch(self, collection: str) -> dict[str, Any]:
        """Cancel the resketch job of a collection, or clear the failure of the last one; the collection stays as it was."""
        return self._json("DELETE", self._path(collection, "resketch"))  # type: ignore[no-any-return]

    def snapshot(self, name: str) -> dict[str, Any]:
        """Write a snapshot of all collections in the service's directory of snapshots. The answer has its ``name`` and the numbers of ``collections``, ``files`` and ``bytes``."""
        return self._json("POST", "/v1/snapshots", {"name": name}, timeout=None)  # type: ignore[no-any-return]

    def ready(self) -> bool:
        """Check whether all collections are open and writable."""
        try:
            return self._json("GET", "/readyz")["status"] == "ready"  # type: ignore[no-any-return]
        except ServiceError as refused:
            if refused.status == 503:
                # Only this status: a service that is unreachable, or refuses the key, is not an answer to the question.
                return False
            raise

    # Documents

    def check(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which documents were seen before, and return only verdicts.

        ``exact``: a stored document has the same text. ``same-fingerprint``: one has the same fingerprint, or all super-shingles or minima, but is not known to have the same text.
        ``near``: one is within the radius, or has enough super-shingles or minima in common (``equal``). ``new``: none of these.
        """
        return self._documents(collection, "check", _without_stored_fields(documents), options)

    def query(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which documents were seen before, and return verdicts and neighbours; options are ``radius``, ``limit``, ``verify``, ``diff``.

        For neighbours beyond the limit, query the same document again with ``after`` set to ``next`` of the answer.
        """
        return self._documents(collection, "query", _without_stored_fields(documents), options)

    def insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """Insert documents; each replaces a stored one with the same id."""
        return self._documents(collection, "insert", documents, options)

    def check_and_insert(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check documents and insert them, in one step.

        ``insert`` is ``new`` (the default), ``not-same-fingerprint``, ``not-exact`` (no document has the same text) or ``always``.
        """
        return self._documents(collection, "check-and-insert", documents, options)

    def paragraphs(self, collection: str, documents: Any, **options: Any) -> Any:
        """Check which paragraphs were seen before, equal or similar, and what share of each page is known; options are ``radius``, ``limit``."""
        return self._documents(collection, "paragraphs", documents, options)

    def rerank(self, collection: str, documents: Any, *, chunk: str = "lines:2") -> Any:
        """Order a list of documents by how much is new in each. The list has ids of stored documents, or objects with ``id``, ``text`` or ``html``.

        ``chunk`` is as in :func:`lookalike.overlap`.
        """
        if isinstance(documents, (str, Mapping)):
            raise TypeError(f"documents must be a list, not {type(documents).__name__}: an order is one of several documents")
        items = ({"id": item} if isinstance(item, str) else item for item in documents)
        return _decoded(self._send("POST", self._operation_path(collection, "rerank", {"chunk": chunk}), _array(_encoded_items(items))))

    def copies_of(self, collection: str, document: Any, **options: Any) -> Any:
        """Find the documents that share chunks with one, by containment, highest first. ``document`` is an id, or an object as for :meth:`rerank`.

        The service's documentation describes ``chunk``, ``min_shared``, ``min_containment`` and ``limit``.
        """
        item = {"id": document} if isinstance(document, str) else document
        return self._json("POST", self._operation_path(collection, "copies-of", options), item, timeout=None)

    def get(self, collection: str, ids: Any, *, text: bool = False) -> Any:
        """The documents with these ids, and ``None`` for an id without one. With ``text=True``, documents of a collection that keeps texts have their ``text``; the client then sends one request for each."""
        items = _ids(ids)
        if not text:
            return self._documents(collection, "get", items, {})
        if isinstance(items, dict):
            return self._with_text(collection, items)
        answers: list[Any] = []
        try:
            for item in items:
                if _is_abandoned():
                    break
                answers.append(self._with_text(collection, item))
        except Exception as error:
            error.answers = answers  # type: ignore[attr-defined]
            raise
        return answers

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
        """All documents with all their parts, one after another. An export that ends early raises :class:`ServiceError`."""
        path = self._path(collection, "export")
        answer = self._request_answer("GET", path, None, is_streamed=True)
        process = os.getpid()
        try:
            for line in _export_lines(answer.response, self.url + path):
                yield json.loads(line)
                if os.getpid() != process:
                    raise LookalikeError("the export began in another process, which reads it, too: export anew in this one")
        finally:
            # The rest of the answer cannot be skipped, so no other request can use the connection.
            answer.connection.close()

    def _path(self, collection: str, operation: str = "") -> str:
        from urllib.parse import quote

        path = "/v1/collections/" + quote(collection, safe="")
        return f"{path}/{operation}" if operation else path

    def _operation_path(self, collection: str, operation: str, options: Mapping[str, Any]) -> str:
        """Return the path of an operation, with its options."""
        from urllib.parse import urlencode

        path = self._path(collection, operation)
        said = {name: _word(value) for name, value in options.items() if value is not None}
        return f"{path}?{urlencode(said)}" if said else path

    def _documents(self, collection: str, operation: str, documents: Any, options: Mapping[str, Any]) -> Any:
        path = self._operation_path(collection, operation, options)
        # One document gets one answer. It is sent as a list of one, because the answer then has the same form as all others.
        if isinstance(documents, (str, Mapping)):
            return self._json("POST", path, [_whole_times(_item(documents))])[0]
        answers: list[Any] = []
        try:
            for batch in _batches(documents):
                # A caller that has given up does not get the answers either.
                if _is_abandoned():
                    break
                answers.extend(_decoded(self._send("POST", path, batch)))
        except Exception as error:
            # These batches are done: if they were sent again, the service would find the documents themselves.
            error.answers = answers  # type: ignore[attr-defined]
            if isinstance(error, ServiceError) and error.document is not None:
                error.document += len(answers)
            raise
        return answers

    def _with_text(self, collection: str, item: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return self._json("POST", self._operation_path(collection, "get", {"text": True}), item)  # type: ignore[no-any-return]
        except ServiceError as refused:
            if refused.code == "no-document":
                return None
            raise

    def _json(self, method: str, path: str, body: Any = None, *, timeout: float | None = _TIMEOUT) -> Any:
        return _decoded(self._send(method, path, None if body is None else _encoded(body), timeout=timeout))

    def _send(self, method: str, path: str, sent: bytes | None, *, timeout: float | None = _TIMEOUT) -> bytes:
        return self._request_answer(method, path, sent, timeout=timeout).body

    def _request_answer(
        self, method: str, path: str, sent: bytes | None, *, is_streamed: bool = False, timeout: float | None = _TIMEOUT
    ) -> _Answer:
        headers = {"Content-Type": "application/json"} if sent is not None or method == "POST" else {}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        begun = monotonic()
        # The body is encoded once and the same bytes are sent again, because an iterator of documents is used up by then.
        while True:
            try:
                answer = self._once(method, path, sent, headers, is_streamed, timeout)
            except ServiceError as error:
                # Nothing was sent. A question about the state of the service is answered by the refusal.
                is_restarting = isinstance(error.__cause__, ConnectionRefusedError) and self._has_answered and path != "/readyz"
                if not is_restarting or self._is_over(begun, _REFUSED_PAUSE):
                    raise
                continue
            self._has_answered = True
            status = answer.response.status
            if 200 <= status < 300:
                return answer
            if status < 400:
                # The service did nothing. The redirect is not followed, because the key is for this address.
                raise _redirect_error(f"{self.url}{path}", status, answer.response.headers.get("Location"))
            wait = answer.response.headers.get("Retry-After", "")
            # HTTP also allows a date, but the service sends seconds. Refusals without the header are final: the same request would be
            # refused again.
            pause = max(int(wait), _PAUSE) if wait.isascii() and wait.isdigit() and len(wait) < 10 else None
            if pause is None or self._is_over(begun, pause):
                raise _refused(f"{self.url}{path}", status, answer.body)

    def _is_over(self, begun: float, pause: float) -> bool:
        """Return true if a request that began then is not to be sent again after a pause. Otherwise this takes as long as the pause."""
        return monotonic() - begun + pause >= self._retry_for or _is_abandoned(within=pause)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], is_streamed: bool, timeout: float | None
    ) -> _Answer:
        import http.client

        idle = self._idle_of_process()
        # If this operation were repeated after it was done, the verdicts would be about the documents themselves.
        is_repeatable = not path.partition("?")[0].endswith("/check-and-insert")
        # First an idle connection, if there is one; then at most one new connection.
        for is_kept in (True, False):
            connection = idle.take() if is_kept else self._connect()
            if connection is None:
                continue
            try:
                _set_timeout(connection, timeout)
                response = _response(connection, method, self._parts.path.rstrip("/") + path, body, headers)
                if is_streamed and 200 <= response.status < 300:
                    return _Answer(connection, response)
                answer = _Answer(connection, response, response.read())
                self._keep_alive(connection, idle)
                return answer
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # An idle connection may have been closed meanwhile, either before the service saw the request or after it was done: this
                # cannot be known.
                closed = isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError))
                if is_kept and closed and not is_repeatable:
                    raise ServiceError(
                        f"{self.url}{path}: the connection broke before the answer: some of the documents may be inserted, so look "
                        "for them with get before you send them again"
                    ) from error
                if not (is_kept and closed):
                    raise ServiceError(f"{self.url}{path}: {_without_answer(error)}") from error
            except BaseException:
                # The rest of the answer would be taken for the answer to the next request.
                connection.close()
                raise
        raise AssertionError("the second attempt returns or raises")

    def _idle_of_process(self) -> _IdleConnections:
        if self._idle.process != os.getpid():
            # Closed in this process only. The parent process still uses these connections, and if both sent requests on one of them, each
            # could get the answer to the other's.
            self.close()
        return self._idle

    def _keep_alive(self, connection: Any, idle: _IdleConnections) -> None:
        idle.connections.append(connection)
        # The client was closed meanwhile, and nobody else would close this connection.
        if idle is not self._idle:
            idle.close()

    def _connect(self) -> Any:
        import http.client

        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host or "", port, timeout=_TIMEOUT)
        return http.client.HTTPSConnection(host or "", port, timeout=_TIMEOUT, context=_trusting(self._ca))


class _Answer:
    """An answer of the service, and the connection that delivers the rest of it if it is not read as a whole."""

    def __init__(self, connection: Any, response: Any, body: bytes = b"") -> None:
        self.connection = connection
        self.response = response
        self.body = body


class _IdleConnections:
    """Connections of a process that no request is using: each serves one request at a time."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # There is no lock, because one might be held when the process forks: appending and popping are atomic.
        self.connections: list[Any] = []

    def take(self) -> Any:
        """Return the most recently used connection that the other side has not ended, or None if there is none."""
        while (connection := self._pop()) is not None and _is_closed(connection):
            connection.close()
        return connection

    def close(self) -> None:
        while (connection := self._pop()) is not None:
            connection.close()

    def _pop(self) -> Any:
        try:
            return self.connections.pop()
        except IndexError:
            return None


class AsyncClient:
    """The operations of :class:`Client` for ``asyncio``. Each runs on a thread of the loop's pool, so the loop is never blocked.

    A call that is cancelled sends no further batch of documents; the one on its way may still be done. ``async with`` closes the client.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._client = Client(*arguments, **named)

    def __repr__(self) -> str:
        return f"<lookalike.AsyncClient of {self._client.url}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """See :meth:`Client.close`."""
        self._client.close()

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

    async def snapshot(self, name: str) -> dict[str, Any]:
        """See :meth:`Client.snapshot`."""
        return await self._call(self._client.snapshot, name)  # type: ignore[no-any-return]

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

    async def get(self, collection: str, ids: Any, *, text: bool = False) -> Any:
        """See :meth:`Client.get`."""
        return await self._call(self._client.get, collection, ids, text=text)

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
        # A thread of its own, in which the export can be closed after a batch that is still being read when the loop has given up.
        reader = ThreadPoolExecutor(1)
        try:
            loop = asyncio.get_running_loop()
            # A batch at a time, because a collection need not fit in memory.
            while batch := await loop.run_in_executor(reader, lambda: list(islice(documents, _BATCH))):
                for document in batch:
                    yield document
        finally:
            reader.submit(documents.close)  # type: ignore[attr-defined]
            reader.shutdown(wait=False)

    async def _call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        import asyncio

        given_up = threading.Event()
        # The thread sees this event, because it runs in a copy of the context.
        before = _given_up.set(given_up)
        try:
            return await asyncio.to_thread(function, *arguments, **named)
        except asyncio.CancelledError:
            given_up.set()
            raise
        finally:
            _given_up.reset(before)


def _rows(documents: Any) -> Any:
    """Return the documents one by one. The rows of a frame or column are read explicitly, because iterating over it may give the names of
    its columns instead."""
    from lookalike._frames import rows_of

    is_frame = hasattr(documents, "columns") or hasattr(documents, "__arrow_c_array__") or hasattr(documents, "chunks")
    return rows_of(documents).dicts() if is_frame and not isinstance(documents, Mapping) else documents


def _item(document: Any) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, Mapping):
        item = dict(document)
        fingerprint: Any = item.get("fingerprint")
        # Fingerprints of 64 bits are numbers in this package, also of NumPy, and digits in the service.
        if hasattr(fingerprint, "__index__") and not isinstance(fingerprint, bool):
            item["fingerprint"] = f"{int(fingerprint) & (1 << 64) - 1:016x}" if -(1 << 63) <= fingerprint < 1 << 64 else str(fingerprint)
        return item
    raise TypeError(f"documents must be str or dict, not {type(document).__name__}")


_STORED_FIELDS = {"id", "metadata", "ttl_seconds", "expires_ms"}


def _without_stored_fields(documents: Any) -> Any:
    """Return one or more documents without the fields that are only stored, which the service does not take for a search."""
    if not isinstance(documents, (str, Mapping)):
        return map(_without_stored_fields_of, _rows(documents))
    return _without_stored_fields_of(documents)


def _without_stored_fields_of(document: Any) -> dict[str, Any]:
    return {name: value for name, value in _item(document).items() if name not in _STORED_FIELDS}


def _ids(ids: Any) -> Any:
    if isinstance(ids, str):
        return {"id": ids}
    if isinstance(ids, Mapping) or len(getattr(ids, "columns", ())) > 0:
        raise TypeError(f"ids must be a str, or several, such as a column of a frame, not {type(ids).__name__}")
    return [{"id": id} for id in _rows(ids)]


def _batches(documents: Iterable[Any]) -> Iterator[bytes]:
    """Return batches of documents, encoded as JSON arrays."""
    batch: list[bytes] = []
    size = 0
    for item in _encoded_items(_whole_times(_item(document)) for document in _rows(documents)):
        # A document above the limit is sent alone: the service decides whether it is too large.
        if batch and (len(batch) == _BATCH or size + len(item) > _BATCH_BYTES):
            yield _array(batch)
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield _array(batch)


def _whole_times(item: dict[str, Any]) -> dict[str, Any]:
    """Return the document with integers for times, which the columns of frames with missing values keep as floats."""
    for name in ("ttl_seconds", "expires_ms"):
        value = item.get(name)
        if isinstance(value, float) and value != value:
            del item[name]
        elif isinstance(value, float) and value.is_integer():
            item[name] = int(value)
    return item


def _array(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _encoded_items(items: Iterable[Any]) -> Iterator[bytes]:
    for number, item in enumerate(items):
        try:
            yield _encoded(item)
        except BadInput as error:
            raise BadInput(f"document {number}: {error}", row=number) from error


def _encoded(value: Any) -> bytes:
    try:
        # As UTF-8 instead of escapes, which take six bytes for each Chinese character.
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        # The service would refuse it, with all documents of the batch.
        raise BadInput(f"a text has {error.object[error.start]!r}, one half of a pair of surrogates, which is no character") from error
    except (TypeError, ValueError) as error:
        raise BadInput(f"a value is not JSON: {error}") from error


def _decoded(body: bytes) -> Any:
    return json.loads(body) if body else None


def _is_abandoned(within: float = 0.0) -> bool:
    """Return true if the caller no longer waits for the call, or stops waiting within some seconds. Otherwise this takes that long."""
    given_up = _given_up.get() or threading.Event()
    return given_up.wait(within)


def _checked(key: str | None) -> str | None:
    """Return a key without the end of the line that it was read from."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):
        # The key is not shown, because messages end up in logs.
        raise ValueError("the key has characters that no key has, such as the end of a line: hand over one key")
    return key or None


def _set_timeout(connection: Any, timeout: float | None) -> None:
    import socket

    # Connecting does not wait for the work of the service. An idle connection is open already.
    is_new = connection.sock is None
    if is_new:
        connection.connect()
        # Otherwise an answer that has no time limit would be waited for even if the other machine is gone.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.sock.settimeout(timeout)


def _response(connection: Any, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
    import http.client

    try:
        connection.request(method, path, body, headers)
    except OSError as error:
        # A service that refuses a large body answers and closes the connection while the body is still being sent.
        if connection.sock is None or isinstance(error, TimeoutError):
            raise
        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException):
            raise error from None
    return connection.getresponse()


def _export_lines(response: Any, url: str) -> Iterator[bytes]:
    """Return the lines of an export, which are joined from pieces of the answer."""
    begun: list[bytes] = []
    for piece in _export_pieces(response, url):
        first, *others = piece.split(b"\n")
        begun.append(first)
        for other in others:
            if line := b"".join(begun).strip():
                yield line
            begun = [other]
    # A connection that is closed also ends an answer of unknown length, but each document ends with its line.
    if response.length or any(begun):
        raise _interrupted(url, "the connection was closed")


def _export_pieces(response: Any, url: str) -> Iterator[bytes]:
    import http.client

    while True:
        try:
            # Iterating over the answer, or reading its lines, would take one that breaks off between two chunks for a complete one.
            piece = response.read1(_PIECE)
        except (OSError, http.client.HTTPException) as error:
            raise _interrupted(url, error or type(error).__name__) from error
        if not piece:
            return
        yield piece


def _interrupted(url: str, reason: object) -> ServiceError:
    return ServiceError(f"{url}: {reason}: the export is incomplete: check that the service is running, and export again")


def _is_closed(connection: Any) -> bool:
    """Return true if the other side has ended an idle connection: it has closed it, or sent data without a request."""
    import select

    if connection.sock is None:
        return False
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return bool(waiting.poll(0))


def _trusting(ca: str | os.PathLike[str] | None) -> Any:
    """Return a context that trusts the certificates in a file, or those of the system."""
    import ssl

    if ca is None:
        return ssl.create_default_context()
    # The error of a file that cannot be read names it; that of the context does not.
    with open(ca, "rb"):
        pass
    try:
        return ssl.create_default_context(cafile=os.fspath(ca))
    except ssl.SSLError as error:
        raise ValueError(f"ca={os.fspath(ca)!r} has no readable certificate in PEM: {error}") from error


def _without_answer(error: Exception) -> str:
    """Return why there is no answer, and what to check."""
    import http.client
    import ssl

    said = str(error) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{said}: trust the certificate with ca=, use the name it is for in the URL, or renew it if it has expired"
    # The others of these are connections that ended early.
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return f"{said}: check that the server speaks TLS: the URL may have to begin with http://"
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
        # The answer is not shown: that of TLS is not text.
        return "the server does not answer in HTTP: the URL may have to begin with https://"
    return f"{said}: check that the service is running"


def _redirect_error(url: str, status: int, location: str | None) -> ServiceError:
    told = "the service is not here" if location is None else f"the service is not here but at {location!r}: use the URL of that one"
    return ServiceError(f"{url}: {status}: {told}", status)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(url: str, status: int, body: bytes) -> ServiceError:
    try:
        problem = json.loads(body)
    # A proxy in front of the service may answer in HTML.
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    detail = problem.get("detail") or "refused"
    item = problem.get("item")
    remedy = _REMEDIES.get(problem.get("code") or "", problem.get("remedy"))
    message = f"{url}: {status}: {detail}" + (f": {remedy}" if remedy else "")
    document = item if isinstance(item, int) else None
    return ServiceError(message, status, problem.get("code"), document=document, field=problem.get("field"))
