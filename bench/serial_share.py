#!/usr/bin/env python3
"""Measures how much of a job's processor time is serial, stage by stage.

    bench/serial_share.py FILE... [--command dedup] [--binary PATH] [--threads 16] [--runs 3] [-- OPTIONS OF THE COMMAND]

Runs `lookalike dedup`, or another command, and reads the processor time of each of its threads from /proc. If a stage takes
C seconds on n threads and the busiest thread takes B, then a part S is serial: B = S + (C - S) / n. If S
is 0, no thread does more than its share. The estimate is more precise with many threads; there need not
be as many cores, and other work on the machine hardly matters, because wall time is not used. Work that
threads do in turn, behind a lock or in the kernel, is not detected; cores.py detects it on a machine with
enough cores. Stages are those of run.json; a command without one is a single stage. Standard library only; Linux.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

INTERVAL = 0.005
TICK = os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """Returns the processor seconds of each thread that is alive."""
    seconds = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return seconds
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                seconds[thread] = int(file.read().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass  # The thread has ended.
    return seconds


def sampled(command):
    """Runs a command. Returns samples of (wall seconds since the start, processor seconds of each thread)."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    samples = []
    while process.poll() is None:
        samples.append((time.monotonic() - start, thread_seconds(process.pid)))
        time.sleep(INTERVAL)
    if process.returncode not in (0, 3):
        sys.exit(f"{command[0]} failed with status {process.returncode}")
    return samples


def busiest(samples, begin, end):
    """Returns the processor seconds of the busiest thread between two moments."""
    taken = {}
    before = {}
    for moment, seconds in samples:
        for thread, now in seconds.items():
            if begin < moment <= end:
                taken[thread] = taken.get(thread, 0) + now - before.get(thread, 0)
            before[thread] = now
    return max(taken.values(), default=0)


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(binary, command, files, threads, options):
    """Returns name, wall seconds, processor seconds and serial seconds of each stage of one run."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        before = cpu_of_children()
        samples = sampled([binary, command, *files, "-o", out, "--quiet", "--threads", str(threads), *options])
        stages = [("job", samples[-1][0], cpu_of_children() - before)]
        if os.path.isdir(out):
            with open(os.path.join(out, "run.json")) as file:
                stages = json.load(file)["measured"]["stages"]
    rows = []
    # The last stage ends with the job.
    begin = samples[-1][0] - sum(wall for _, wall, _ in stages)
    for name, wall, cpu in stages:
        most = min(busiest(samples, begin, begin + wall), cpu)
        serial = max(0.0, (threads * most - cpu) / (threads - 1))
        rows.append((name, wall, cpu, serial))
        begin += wall
    return rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("files", nargs="+")
    arguments.add_argument("--command", default="dedup")
    arguments.add_argument("--binary", default="target/release/lookalike")
    arguments.add_argument("--threads", type=int, default=16)
    arguments.add_argument("--runs", type=int, default=3)
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    given = arguments.parse_args(own)
    runs = [measure(given.binary, given.command, given.files, given.threads, options) for _ in range(given.runs)]
    print(f"load {os.getloadavg()[0]:.1f}, {given.threads} threads, medians of {given.runs} runs")
    print("| stage | CPU s | serial CPU s | share of all |")
    print("|---|---|---|---|")
    total = statistics.median(sum(row[2] for row in rows) for rows in runs)
    serial = 0
    for stage, name in enumerate(row[0] for row in runs[0]):
        cpu, part = (statistics.median(rows[stage][column] for rows in runs) for column in (2, 3))
        serial += part
        print(f"| {name} | {cpu:.2f} | {part:.2f} | {part / total:.1%} |")
    print(f"| all | {total:.2f} | {serial:.2f} | {serial / total:.1%} |")


if __name__ == "__main__":
    main()
