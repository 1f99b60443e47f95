"""Removes the duplicates that each site has of its own pages; what two sites share stays.

    python frame_by_site.py articles.jsonl
"""

import sys

import polars

import lookalike as lk


def dedup_by_site(frame: polars.DataFrame) -> polars.DataFrame:
    """The frame without duplicates, and with the number of pages that each row stands for."""
    # The site is the host of the column `url`. within="language" would take any other column.
    annotated = lk.dedup(frame, text="text", id="id", within="site").annotated()
    stands_for = polars.col("cluster_size").fill_null(1).alias("stands_for")
    return annotated.filter(~polars.col("is_duplicate")).select(*frame.columns, stands_for)


def main(source: str) -> None:
    frame = polars.read_ndjson(source)
    unique = dedup_by_site(frame)
    print(f"{len(frame)} rows, {len(unique)} without duplicates within a site")
    print(unique.select("id", "stands_for").sort("stands_for", "id", descending=[True, False]).head())


if __name__ == "__main__":
    main(*sys.argv[1:])
