#!/bin/bash
# Installs the system packages that darc is built, run and tested with, where they are missing:
# with apt, as root or by sudo. Says nothing when nothing is missing. With the argument "lldb" also
# that, with "test" what the tests drive and compile with, with "kernel" what darc-vm needs to run a
# kernel and to build one; several may be given.
set -eu

packages=(python3 python3-venv gcc g++ libc6-dev libc6-dbg make binutils gdb)
tools=(python3 gcc g++ make readelf gdb)

fail() {
    echo "setup: $*" >&2
    exit 1
}

for purpose; do
    case $purpose in
    lldb)
        packages+=(lldb)
        tools+=(lldb)
        ;;
    test)
        packages+=(lldb clang libunwind-dev valgrind default-jdk-headless)
        tools+=(lldb clang valgrind javac)
        ;;
    kernel)
        packages+=(qemu-system-x86 busybox-static e2fsprogs xz-utils flex bison bc libelf-dev dwarves)
        tools+=(qemu-system-x86_64 busybox mke2fs xz flex bison bc pahole)
        ;;
    *) fail "there is nothing to install for '$purpose': lldb, test or kernel" ;;
    esac
done

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    missing=()
    for tool in "${tools[@]}"; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    [ ${#missing[@]} -eq 0 ] || fail "install these with your package manager: ${missing[*]}"
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

advice="as root, run: apt-get update && apt-get install -y ${missing[*]}"
if [ "$(id -u)" -eq 0 ]; then
    root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    root=(sudo)
else
    fail "$advice"
fi

apt() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$log" 2>&1
}

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Slim containers leave manuals out, and their folder, in which the JDK's installation makes links.
case " ${missing[*]} " in
*" default-jdk-headless "*) "${root[@]}" mkdir -p /usr/share/man/man1 ;;
esac
# The package lists may be absent (a fresh container) or out of date: only then are they fetched.
if ! apt install -y --no-install-recommends "${missing[@]}"; then
    if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
        tail -n 20 "$log" >&2
        fail "apt-get failed; $advice"
    fi
fi
