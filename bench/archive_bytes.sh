#!/bin/sh
# Compares the bytes of `lookalike archive build` with plain zstd, on versions of manuals, revisions of laws, licence texts and crawl samples.
#
#   bench/archive_bytes.sh LOOKALIKE DATA DIR
#
# DATA has the corpora (license-texts, de-laws-revisions, ...), each a folder with docs.jsonl.gz; a corpus that is missing is named and left
# out. DIR gets the results and the HTML of four versions of the LLVM manual, which needs apt-get with the sources of Debian 12 and dpkg-deb; a
# second run reuses it. zstd and GNU tar are needed too. Prints a Markdown table. For zstd, files are put into one tar file, sorted by name, and
# JSON Lines are compressed as they are. The documents of a block compress together; see `archive build --block`.
set -eu

lookalike=$(realpath "${1:?usage: archive_bytes.sh LOOKALIKE DATA DIR}")
data=$(realpath "${2:?}")
mkdir -p "${3:?}"
cd "$3"

# Makes the pages of four versions of a manual, as files.
manuals() {
    [ ! -e llvm ] || return 0
    mkdir -p deb llvm.part
    for version in 13 14 15 16; do
        (cd deb && apt-get download -qq -o APT::Sandbox::User="$(id -un)" "llvm-$version-doc") || return 1
        dpkg-deb -x deb/llvm-$version-doc_*.deb "llvm.part/llvm-$version-doc"
    done
    find llvm.part \( -type f ! -name '*.html' -o -type l \) -delete
    mv llvm.part llvm
}

# Makes the records of all web archives as JSON Lines, sorted as lines.
crawls() {
    [ ! -e crawls.jsonl ] || return 0
    "$lookalike" dedup "$data"/warc-samples/*.arc* "$data"/warc-samples/*.warc.gz -o crawls --overwrite --quiet || [ $? -eq 3 ] || return 1
    cat crawls/kept.jsonl crawls/removed.jsonl | LC_ALL=C sort >crawls.jsonl
}

packed() {
    if [ -d "$1" ]; then
        tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - "$1"
    else
        cat "$1"
    fi | zstd -q -c -19 --single-thread $2 | wc -c
}

archived() {
    rm -f out.lka
    # Status 3: done, but a record was not a document.
    "$lookalike" archive build "$1" -o out.lka --block "$2" --threshold "$3" --quiet --threads 2 || [ $? -eq 3 ]
    "$lookalike" archive info out.lka --json
}

field() {
    printf %s "$1" | tr ',{}' '\n\n\n' | sed -n "s/^\"$2\"://p"
}

row() {
    large=$(archived "$2" 32M 0.8)
    similar=$(archived "$2" 32M 0.5)
    middle=$(archived "$2" 8M 0.8)
    small=$(archived "$2" 1M 0.8)
    echo "| $1 | $(field "$large" documents) | $(field "$large" copies) | $(field "$large" source_bytes) | $(packed "$2" "") | $(packed "$2" --long=27) |" \
        "$(field "$large" archive_bytes) | $(field "$similar" archive_bytes) | $(field "$middle" archive_bytes) | $(field "$small" archive_bytes) | $(field "$large" directory_bytes) |"
}

echo "| collection | documents | copies | bytes | floor: zstd -19 | goal: zstd --long=27 -19 | --block 32M | the same, --threshold 0.5 | 8M | 1M | directory |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
if manuals; then row "LLVM manual, 4 versions, files" llvm; else echo "left out: the LLVM manuals cannot be downloaded" >&2; fi
for name in manual-versions-html java-api-html license-texts de-laws-revisions zh-laws; do
    if [ ! -e "$data/$name/docs.jsonl.gz" ]; then
        echo "left out: $data/$name is not there" >&2
        continue
    fi
    gzip -dc "$data/$name/docs.jsonl.gz" >"$name.jsonl"
    row "$name" "$name.jsonl"
done
if [ -e "$data/warc-samples" ] && crawls; then row "crawl samples" crawls.jsonl; else echo "left out: $data/warc-samples is not there" >&2; fi
