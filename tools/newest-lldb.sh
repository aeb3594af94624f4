#!/bin/bash
# Prints the path of the newest lldb that this release of Debian packages. Two releases of lldb
# cannot be installed side by side (their Python modules conflict), so it is unpacked into build/,
# with what it depends on and is not installed; nothing of the system is changed.
set -eu

fail() {
    echo "newest-lldb: $*" >&2
    exit 1
}

# Those with a module for Python alone.
newest() {
    apt-cache search --names-only '^python3-lldb-[0-9]+$' | sed 's/^python3-lldb-\([0-9]*\) .*/\1/' |
        sort -n | tail -n 1
}

command -v apt-cache >/dev/null || fail "there is no apt to get lldb from"
version=$(newest)
if [ -z "$version" ] && [ "$(id -u)" -eq 0 ]; then
    apt-get -qq update >&2
    version=$(newest)
fi
[ -n "$version" ] || fail "apt knows no lldb: run apt-get update as root"
if command -v "lldb-$version"; then
    exit 0
fi

built=$(cd "$(dirname "$0")/.." && pwd)/build
folder=$built/lldb-$version
mkdir -p "$built"
exec 9>"$built/lldb.lock"
flock 9
if [ ! -x "$folder/lldb" ]; then
    work=$(mktemp -d -p "$built")
    trap 'rm -rf "$work"' EXIT
    packages=$(apt-get -s -qq --no-install-recommends install "lldb-$version" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    [ -n "$packages" ] || fail "apt does not tell what lldb-$version needs"
    # shellcheck disable=SC2086
    (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download $packages) >&2 ||
        fail "cannot download lldb-$version: run apt-get update as root, or try again later"
    mkdir "$work/made"
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/made"
    done
    cat >"$work/made/lldb" <<END
#!/bin/sh
folder=\$(dirname "\$(readlink -f "\$0")")
export LD_LIBRARY_PATH="\$folder/usr/lib/x86_64-linux-gnu:\$folder/usr/lib/llvm-$version/lib"
exec "\$folder/usr/lib/llvm-$version/bin/lldb" "\$@"
END
    chmod +x "$work/made/lldb"
    chmod 755 "$work/made"
    mv "$work/made" "$folder"
fi
echo "$folder/lldb"
