#!/usr/bin/env bash
# Measures the service with the load generator on the same machine: N fingerprints loaded in bulk, then single checks, batches, texts,
# durable check-and-inserts, overload, a start after a kill, and half an hour of mixed requests with documents that expire (SOAK_SECONDS
# seconds, SOAK_RATE per second). `fill` loads N fingerprints through the service instead and measures it meanwhile. `hot` measures checks of N
# fingerprints that share SHARED_BITS bits, which must be set for `load` too. `exact` compares answers with a linear scan (PYTHON must have
# numpy 2). Prints one line of JSON for each measurement.
#   service.sh load|fill|exact|hot|measure|overload|restart|soak DIR [N]
# Needs `cargo build --release -p lookalike-cli --features full` and `cargo build --release -p lookalike-server --example load`.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1 data=$2 stored=${3:-10000000}
binary=target/release/lookalike load=target/release/examples/load
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"

if [ "$what" = load ]; then
    "$load" codes "$stored" "$data.u64"
    # The last line has the peak memory of the load in KiB.
    "$binary" store load "$data" pages "$data.u64" &
    loader=$! peak=0
    while now=$(awk '/VmHWM/ {print $2}' "/proc/$loader/status" 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        sleep 0.5
    done
    wait "$loader"
    echo "{\"peak_kib\":$peak,\"data_mib\":$(du -sm "$data" | cut -f1)}"
    rm "$data.u64"
    exit
fi

log=$(mktemp)
"$binary" serve --data "$data" --listen 127.0.0.1:0 --max-connections "${CONNECTIONS:-6000}" 2>>"$log" &
pid=$!
trap 'kill "$pid"; wait "$pid" || true; rm "$log"' EXIT
begin() {
    started=$(date +%s%N)
    until grep -q '"event":"listening"' "$log"; do sleep 0.02; kill -0 "$pid"; done
    address=$(grep -o '"address":"[^"]*"' "$log" | cut -d'"' -f4)
    echo "{\"listening_after_ms\":$((($(date +%s%N) - started) / 1000000)),\"resident_mib\":$(($(awk '/VmRSS/ {print $2}' "/proc/$pid/status") / 1024))}"
}
begin
run() { "$load" "$address" "$@"; }
resident() { awk -v what="Vm$1:" '$1 == what {print $2}' "/proc/$pid/status"; }

if [ "$what" = fill ]; then
    [ -f "$data.u64" ] || "$load" codes "$stored" "$data.u64"
    "$binary" client create pages --radius 3 --url "http://$address" >/dev/null
    "$binary" client load pages "$data.u64" --url "http://$address" &
    loader=$!
    while kill -0 "$loader" 2>/dev/null; do
        sleep "${FILL_EVERY:-60}"
        count=$("$binary" client show pages --url "http://$address" | grep -o '"documents": *[0-9]*' | grep -o '[0-9]*$')
        echo "{\"documents\":$count,\"resident_kib\":$(resident RSS),\"bytes_a_document\":$((count ? $(resident RSS) * 1024 / count : 0))}"
    done
    wait "$loader"
    until "$binary" client show pages --url "http://$address" | grep -q '"compacting": *false'; do sleep 1; done
    echo "{\"compacted\":true,\"resident_kib\":$(resident RSS),\"peak_kib\":$(resident HWM),\"data_mib\":$(du -sm "$data" | cut -f1)}"
elif [ "$what" = exact ]; then
    [ -f "$data.u64" ] || "$load" codes "$stored" "$data.u64"
    "${PYTHON:-python3}" bench/linear_scan.py "$address" "$data.u64" "${SAMPLES:-200}"
elif [ "$what" = hot ]; then
    run check 5000 10 64 "$stored" "$pid"
    run check 200000 4 64 "$stored" "$pid"
elif [ "$what" = measure ]; then
    # kind, rate, seconds, connections
    run healthz 20000 8 64 "$stored" "$pid"
    run check 20000 10 64 "$stored" "$pid"
    run check 25000 8 64 "$stored" "$pid"
    run check 200000 4 64 "$stored" "$pid"
    run check-batch 3000 10 64 "$stored" "$pid"
    run check-batch 20000 2 64 "$stored" "$pid"
    run check-batch-json 20000 1 64 "$stored" "$pid"
    run check-text 2000 8 64 "$stored" "$pid"
    run check-html 2000 8 64 "$stored" "$pid"
    run check-and-insert 10000 10 256 "$stored" "$pid"
    run healthz 20000 4 64 "$stored" "$pid"
elif [ "$what" = soak ]; then
    run soak "${SOAK_RATE:-2000}" "${SOAK_SECONDS:-1800}" 64 "$stored" "$pid" "$data"
elif [ "$what" = restart ]; then
    # The kill comes while writes are in progress.
    "$load" "$address" check-and-insert 10000 60 256 "$stored" >/dev/null &
    writer=$!
    sleep 4
    kill -9 "$pid" "$writer"
    wait "$pid" "$writer" || true
    : >"$log"
    "$binary" serve --data "$data" --listen 127.0.0.1:0 2>>"$log" &
    pid=$!
    begin
    run check 5000 4 64 "$stored" "$pid"
else
    # Measure the maximum rate, then five times that rate over 5,000 connections beside 2,000 half-open ones, and then at once a low rate.
    run check 200000 4 64 "$stored" "$pid"
    run check "${PEAK:-25000}" 6 64 "$stored" "$pid"
    run check $((5 * ${PEAK:-25000})) 10 5000 "$stored" "$pid" 2000
    run check 5000 4 64 "$stored" "$pid"
fi
