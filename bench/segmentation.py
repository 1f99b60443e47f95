"""Measures how fast jieba segments text in Python, for comparison with
`cargo run --release -p lookalike --features languages --example segmentation FILE`.
Run: pip install jieba==0.42.1; python segmentation.py FILE [seconds]"""

import sys
import time

import jieba

text = open(sys.argv[1], encoding="utf-8").read()
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 3
jieba.initialize()
start, rounds, words = time.perf_counter(), 0, 0
while time.perf_counter() - start < seconds:
    words = sum(1 for _ in jieba.cut(text, HMM=True))
    rounds += 1
spent = time.perf_counter() - start
size = len(text.encode())
print(f"jieba {jieba.__version__} in Python: {size * rounds / spent / 1e6:.2f} MB/s, {words} tokens")
