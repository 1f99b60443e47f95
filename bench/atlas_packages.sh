#!/bin/sh
# Gets real near-replicas for the atlas: 29 documentation packages of Debian 12, several manuals in two or more versions.
#
#   bench/atlas_packages.sh DIR
#
# Needs apt-get with the sources of Debian 12 (bookworm and bookworm-security), dpkg-deb, and 4 GB in DIR. Unpacks each package into
# DIR/PACKAGE_VERSION_all. Packages that are no longer in the archive are named and left out; a second run continues the first.
set -eu

dir=${1:?usage: atlas_packages.sh DIR}
packages="openjdk-17-doc=17.0.19+10-1~deb12u2 openjdk-17-doc=17.0.21.1+2-1~deb12u1
linux-doc-6.1=6.1.170-3 linux-doc-6.1=6.1.190-1 linux-doc-6.1=6.1.192-2
libboost1.74-doc libboost1.81-doc libstdc++-11-doc libstdc++-12-doc
llvm-13-doc llvm-14-doc llvm-15-doc llvm-16-doc llvm-19-doc
clang-14-doc clang-15-doc clang-16-doc clang-19-doc
rust-doc python3.11-doc qtbase5-doc-html python-pandas-doc erlang-doc ghc-doc scala-doc libfastutil-java-doc
petsc3.18-doc wx3.2-doc postgresql-doc-15"

mkdir -p "$dir/packages"
dir=$(cd "$dir" && pwd)
for package in $packages; do
    mark=$dir/packages/$(printf %s "$package" | tr -c 'A-Za-z0-9.+\n-' _)
    [ ! -e "$mark" ] || continue
    if ! (cd "$dir/packages" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$package"); then
        echo "left out: $package is not in the archive"
        continue
    fi
    for file in "$dir"/packages/*.deb; do
        dpkg-deb -x "$file" "$dir/$(basename "$file" .deb)"
        rm "$file"
    done
    : >"$mark"
done
