"""Columns of the rows that tasks return, in Spark's words, by the function of `lookalike.spark._kernels` that returns them."""

from __future__ import annotations

__all__ = ["SCHEMAS"]

#: Counts that pass from the packed documents through their groups to the measures of the stage.
_COUNTS = "new long, missing long, missing_text long, checksum long, keep_missing long, keep_unusable long, keep_unusable_first string"

SCHEMAS = {
    "probe": "version string",
    "sample": "frequencies binary, documents long, features long, bytes long",
    "pack": f"bucket int, classes binary, ids binary, keys binary, {_COUNTS}",
    "group": f"bucket int, classes binary, edges binary, edge_count long, documents long, texts long, repeated long, {_COUNTS}",
    "promising": "x long, y long",
    "pack_components": "bucket int, classes binary, components binary",
    "members": "component long, order binary, id string, against boolean, copies array<string>, are_against boolean",
    "settle": "survivor string, is_new boolean, id string, similarity double, reason string",
    "verified_pairs": "x string, x_against boolean, y string, y_against boolean, similarity double",
    "chunks": "id string, unit binary, chunking int, chunks array<long>",
    "fingerprints": "id string, fingerprint long",
    "near_queries": "x long, y long, distance int",
    "near_in_blocks": "x long, y long, distance int",
    "read_archives": "id string, source string, record long, offset long, charset string, text string, reason string, count long",
}
