"""Pytest plugin under which datasketch's own tests get lookalike's classes instead of datasketch's.

The tests are those of datasketch 1.6.5, the last version whose source distribution has any; hash values are those of the scheme ``legacy``.
The tests also use weighted and b-bit sketches, which are datasketch's own.
"""

import sys
import types
import unittest.mock

import datasketch.b_bit_minhash
import datasketch.weighted_minhash

from lookalike.compat import datasketch as ours
from lookalike.compat.datasketch import _lean_minhash, _lsh, _minhash

ours.MinHash.default_scheme = "legacy"

theirs = types.ModuleType("datasketch")
vars(theirs).update({name: getattr(ours, name) for name in ours.__all__})
vars(theirs).update(minhash=_minhash, lean_minhash=_lean_minhash, lsh=_lsh)
vars(theirs).update(b_bit_minhash=datasketch.b_bit_minhash, weighted_minhash=datasketch.weighted_minhash)
for name in list(sys.modules):
    if name.partition(".")[0] == "datasketch":
        del sys.modules[name]
sys.modules["datasketch"] = theirs
for name in ("minhash", "lean_minhash", "lsh", "b_bit_minhash", "weighted_minhash"):
    sys.modules[f"datasketch.{name}"] = getattr(theirs, name)


def fake_hash_func(item):
    return item


# The distribution lacks test/utils.py.
fake_hash_func.__module__ = "test.utils"
sys.modules["test"] = types.ModuleType("test")
sys.modules["test.utils"] = types.ModuleType("test.utils")
sys.modules["test"].utils = sys.modules["test.utils"]
sys.modules["test.utils"].fake_hash_func = fake_hash_func
# `mock` is in the standard library since Python 3.3; `mockredis` is an in-memory service for the tests left out below.
sys.modules["mock"] = unittest.mock
sys.modules["mockredis"] = types.ModuleType("mockredis")

NOT_SUPPORTED = dict.fromkeys(
    (
        "TestMinHashLSH::test_insert_redis",
        "TestMinHashLSH::test_query_redis",
        "TestMinHashLSH::test_query_buffer_redis",
        "TestMinHashLSH::test_merge_redis",
    ),
    "indexes are in memory: Redis is refused with NotImplementedError",
)


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if item.nodeid.partition("::")[2] in NOT_SUPPORTED]
    if len(left_out) != len(NOT_SUPPORTED):
        raise AssertionError(f"datasketch has no tests of these names any more: {sorted(NOT_SUPPORTED)}")
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
