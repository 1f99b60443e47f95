"""Reads the same files from this disk, from an S3 server and over HTTP, both on this machine, and compares.

usage: check_stores.py LOOKALIKE      (moto[server] and boto3 from PyPI; a build with the feature `cloud`)
"""

import gzip
import http.server
import json
import logging
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading

import boto3
from moto.server import ThreadedMotoServer

binary = os.path.abspath(sys.argv[1])
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
    "other/d.jsonl": line("d", "not asked for").encode(),
}

folder = tempfile.TemporaryDirectory()
for name, content in FILES.items():
    path = pathlib.Path(folder.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server.start()
endpoint = "http://%s:%d" % server.get_host_and_port()
keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "hush-hush-hush", "AWS_REGION": "us-east-1"}
client = boto3.client(
    "s3", endpoint_url=endpoint, aws_access_key_id="testing", aws_secret_access_key="hush-hush-hush", region_name="us-east-1"
)
client.create_bucket(Bucket="data")
for name, content in FILES.items():
    client.put_object(Bucket="data", Key=name, Body=content)


class Files(http.server.SimpleHTTPRequestHandler):
    """The folder; below /cut/ all files break off."""

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=folder.name)

    def do_GET(self):
        if not self.path.startswith("/cut/"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(line("cut", story).encode())
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        pass


def serve(scheme):
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    if scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
        web.socket = context.wrap_socket(web.socket, server_side=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    return "%s://localhost:%d" % (scheme, web.server_port)


tls = pathlib.Path(__file__).parent.parent / "crates/lookalike-cli/tests/it/tls"
site, secure = serve("http"), serve("https")
environment = {
    **os.environ,
    **keys,
    "AWS_ENDPOINT": endpoint,
    "AWS_ALLOW_HTTP": "true",
    "SSL_CERT_FILE": str(tls / "ca.pem"),
}


def run(command, *arguments, status=0):
    done = subprocess.run([binary, command, *arguments], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def texts(*arguments):
    rows = map(json.loads, run("extract", *arguments, "--quiet").stdout.splitlines())
    return [(row["source"].rpartition("/")[2], row["text"]) for row in rows]


def check(what, found, expected):
    print(f"{what}: {'as expected' if found == expected else f'{found} instead of {expected}'}")
    if found != expected:
        sys.exit(1)


crawl = os.path.join(folder.name, "crawl")
check("all below a path", texts("s3://data/crawl/"), texts(crawl))
check("one object", texts("s3://data/crawl/b.jsonl.gz"), texts(os.path.join(crawl, "b.jsonl.gz")))
check("a pattern", texts("s3://data/crawl/*.jsonl"), texts(os.path.join(crawl, "a.jsonl")))
check("a pattern of any depth", texts("s3://data/**/*.warc.gz"), texts(os.path.join(crawl, "deep/c.warc.gz")))
check("over HTTP", texts(f"{site}/crawl/b.jsonl.gz"), texts(os.path.join(crawl, "b.jsonl.gz")))
missing = run("extract", "s3://data/crawl/none.jsonl", status=1).stderr
check("an object that is not there", "s3://data/crawl/none.jsonl" in missing and "AWS_" in missing, True)
missing = run("extract", "s3://data/nowhere/*", status=1).stderr
check("a pattern that nothing fits", "no file matches" in missing, True)
missing = run("extract", f"{site}/none.jsonl", status=1).stderr
check("HTTP status 404", "none.jsonl" in missing, True)
check("over TLS", texts(f"{secure}/crawl/a.jsonl"), texts(os.path.join(crawl, "a.jsonl")))
for what, address, reason in [
    ("a transfer that breaks off", f"{site}/cut/a.jsonl", "body"),
    ("a folder over HTTP", f"{site}/crawl/", "no list of files"),
    ("an address with a query", f"{site}/crawl/a.jsonl?token=hush", "query"),
    ("an address with a password", f"{site.replace('//', '//name:hush@')}/crawl/a.jsonl", "password"),
    ("an address that is none", "s3://", "s3://"),
]:
    check(what, reason in run("extract", address, status=1).stderr, True)

out = os.path.join(folder.name, "out")
run("dedup", "s3://data/crawl/", "-o", out)
kept = [json.loads(row) for row in open(os.path.join(out, "kept.jsonl"))]
report = json.load(open(os.path.join(out, "run.json")))
check("documents of dedup", report["counts"]["documents"], 5)
copies = [row["file"] for row in kept if "file" in row]
check("a document is copied", [open(os.path.join(out, file)).read() for file in copies] in ([story], []), True)
everything = "".join(path.read_text(errors="replace") for path in pathlib.Path(out).rglob("*") if path.is_file())
check("no secret in the results", "hush" in everything, False)
server.stop()
