#!/bin/bash
# Installs what the benchmarks need, where it is missing (Debian, Ubuntu): the tools that darc is compared
# with; with "real" or "why" the programs of make bench-real or bench-why, their compilers, and the tools that
# look at them.
set -eu

packages=() missing=()
needs() { # a command, a file or a pattern of one; the package
    if [[ $1 == /* ]]; then compgen -G "$1" >/dev/null; else PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; fi && return
    packages+=("$2") missing+=("$1")
}
if [ "${1-}" = real ]; then
    needs redis-server redis-server
    needs nginx nginx
    needs ffmpeg ffmpeg
    needs clang clang
    needs '/usr/lib/postgresql/*/bin/postgres' postgresql
    needs /usr/include/leveldb/c.h libleveldb-dev
    needs java openjdk-17-jre-headless
    needs javac openjdk-17-jdk-headless
    needs rustc rustc
    needs strace strace
    needs perf linux-perf
elif [ "${1-}" = why ]; then
    needs redis-server redis-server
    needs nginx nginx
    needs apache2 apache2
    needs '/usr/lib/postgresql/*/bin/postgres' postgresql
    needs /usr/include/leveldb/c.h libleveldb-dev
    needs /usr/include/snappy.h libsnappy-dev
    needs rustc rustc
    needs perf linux-perf
else
    needs uftrace uftrace
    needs perf linux-perf
fi
[ ${#packages[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "benchmarks: install these with your package manager: ${missing[*]}" >&2
    exit 1
fi
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}" >/dev/null
}
install || { "${root[@]}" apt-get -qq update && install; }
