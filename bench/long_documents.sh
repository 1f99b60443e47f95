#!/bin/sh
# Gets real long documents for the race: the HTML manuals of Debian packages as JSON Lines.
#
#   bench/long_documents.sh DIR
#
# Needs apt-get (the figures in README.md are from Debian 12), dpkg-deb, cargo, and 5 GB in DIR. Writes
#   DIR/long-370.jsonl   a few packages, some 370 MB of text
#   DIR/long-2g.jsonl    all of them, some 2 GB of text
#   DIR/packages.tsv     package, pages, bytes of HTML, bytes of text
# Packages that are no longer in the archive are named and left out; a second run continues the first.
set -eu

dir=${1:?usage: long_documents.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)

small="rust-doc openjdk-17-doc linux-doc-6.1 python3.11-doc libboost1.81-doc libboost1.74-doc
qtbase5-doc-html libstdc++-12-doc libstdc++-11-doc python-pandas-doc erlang-doc"
more="postgresql-doc-15 ghc-doc scala-doc libfastutil-java-doc casacore-doc petsc3.18-doc libsbml5-doc libgecode-doc
gnuradio-doc libghc-gi-gtk-doc libpcl-doc wx3.2-doc openscenegraph-doc lazarus-doc-2.2
rust-web-doc libvisp-doc dcmtk-doc libgtkmm-3.0-doc cppreference-doc-en-html lilypond-doc-html
libghc-openglraw-doc libhbci4j-core-java-doc groovy-doc libjogl2-java-doc libapache-poi-java-doc
twisted-doc derby-doc seqan3-doc elastix-doc nodejs-doc libghc-agda-doc
libghc-ghc-lib-parser-doc libball1.5-doc libcoin-doc libjuce-doc ogre-1.12-doc python-scipy-doc
python-statsmodels-doc racket-doc crystal-doc clhep-doc libarm-compute-doc gnome-devel-docs
debian-handbook installation-guide-amd64 singular-doc vtk9-doc"

(cd "$here" && cargo build --quiet --release --no-default-features --bin manual_pages)
manual_pages=$here/target/release/manual_pages
mkdir -p "$dir/text"
dir=$(cd "$dir" && pwd)

# Downloads one package and writes its pages to text/PACKAGE.jsonl.
fetch() {
    rm -rf "$dir/deb"
    mkdir "$dir/deb"
    if ! (cd "$dir/deb" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$1"); then
        echo "left out: $1 is not in the archive"
        return 0
    fi
    dpkg-deb --fsys-tarfile "$dir"/deb/*.deb |
        "$manual_pages" "$1" 2>"$dir/text/$1.tsv" >"$dir/text/part"
    rm -r "$dir/deb"
    mv "$dir/text/part" "$dir/text/$1.jsonl"
    cat "$dir/text/$1.tsv"
}

# Joins the texts of the packages named after the first argument, as far as they exist.
join() {
    out=$1
    shift
    for name in "$@"; do
        [ ! -e "$dir/text/$name.jsonl" ] || cat "$dir/text/$name.jsonl"
    done >"$out.part"
    mv "$out.part" "$out"
    wc -lc "$out"
}

for name in $small $more; do
    [ -e "$dir/text/$name.jsonl" ] || fetch "$name"
done
cat "$dir"/text/*.tsv >"$dir/packages.tsv"
# shellcheck disable=SC2086 # the lists are words
join "$dir/long-370.jsonl" $small
# shellcheck disable=SC2086
join "$dir/long-2g.jsonl" $small $more
