#!/usr/bin/env python3
"""Compares kernels built in this workspace with those built in a package outside it, with cargo's default release settings.

    bench/outside.py TEXT [--rounds 5]        TEXT: any text of some megabytes

The examples `throughput` (core) and `kernel_throughput` (Hamming) are built in the workspace, and again as a package of their own that depends on
the crates by path. Both run alternately on one core, and the best run of each line counts. Prints the speed outside divided by that inside.
Standard library only.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = {"throughput": "lookalike", "kernel_throughput": "lookalike-hamming"}
# A name, a figure, and its unit: a time or a rate.
LINE = re.compile(r"^(.{28}) +([\d.]+) (ns|MB/s)")


def inside():
    """Builds the examples in the workspace. Returns name -> program."""
    for name, crate in EXAMPLES.items():
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", crate, "--example", name], cwd=ROOT, check=True)
    return {name: ROOT / "target/release/examples" / name for name in EXAMPLES}


def outside(folder):
    """Builds the examples as a package of their own. Returns name -> program."""
    programs = folder / "src/bin"
    programs.mkdir(parents=True)
    for name, crate in EXAMPLES.items():
        shutil.copy(ROOT / "crates" / crate / "examples" / f"{name}.rs", programs)
    shutil.copytree(ROOT / "crates/lookalike-hamming/examples/measuring", programs / "measuring")
    shutil.copy(ROOT / "Cargo.lock", folder)
    crates = "\n".join(f'{crate} = {{ path = "{ROOT / "crates" / crate}" }}' for crate in EXAMPLES.values())
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "outside"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n{crates}\n\n[workspace]\n'
    )
    subprocess.run(["cargo", "build", "--release", "--quiet", "--target-dir", folder / "target"], cwd=folder, check=True)
    return {name: folder / "target/release" / name for name in EXAMPLES}


def figures(command):
    """Runs a program. Returns (section, name) -> speed, where higher is better."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found, section = {}, ""
    for line in printed.splitlines():
        if match := LINE.match(line):
            name, figure, unit = match.groups()
            figure = float(figure)
            found[section, name.strip()] = figure if unit == "MB/s" else 1 / max(figure, 1e-9)
        elif line.strip():
            section = line.strip()
    return found


def best(runs):
    """Returns the highest speed of each line."""
    return {key: max(run[key] for run in runs) for key in runs[0]}


def main():
    """Builds, runs and prints."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("text", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    if hasattr(os, "sched_setaffinity"):
        core = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch:
        builds = [inside(), outside(pathlib.Path(scratch))]
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})
        for name in EXAMPLES:
            given = [options.text] if name == "throughput" else []
            runs = [[], []]
            for _ in range(options.rounds):
                for build, measured in zip(builds, runs):
                    measured.append(figures([build[name], *given]))
            within, without = map(best, runs)
            shares = {key: without[key] / within[key] for key in within}
            print(f"\n{name}: {len(shares)} figures, outside over inside: least {min(shares.values()):.2f}, "
                  f"median {statistics.median(shares.values()):.2f}, most {max(shares.values()):.2f}")
            for (section, line), share in sorted(shares.items(), key=lambda entry: entry[1])[:12]:
                print(f"  {share:.2f}  {line}  ({section})")


if __name__ == "__main__":
    main()
