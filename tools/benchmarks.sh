#!/bin/bash
# Installs the tools that the benchmarks compare darc with, where they are missing (Debian, Ubuntu).
set -eu

command -v uftrace >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
    echo "benchmarks: install uftrace with your package manager" >&2
    exit 1
fi
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
install() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y uftrace; }
install || { "${root[@]}" apt-get -qq update && install; }
