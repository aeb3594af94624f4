#!/bin/bash
# Prints the path of the newest lldb that this release of Debian packages. Two releases of lldb
# cannot be installed side by side (their Python modules conflict), so it is unpacked into build/.
set -eu

version=$(apt-cache search --names-only '^lldb-[0-9]+$' | sed 's/^lldb-\([0-9]*\) .*/\1/' | sort -n |
    tail -n 1)
[ -n "$version" ] || { echo "newest-lldb: apt knows no lldb" >&2; exit 1; }
if command -v "lldb-$version"; then
    exit 0
fi

folder=$(cd "$(dirname "$0")/.." && pwd)/build/lldb-$version
if [ ! -x "$folder/lldb" ]; then
    mkdir -p "${folder%/*}"
    work=$(mktemp -d -p "${folder%/*}")
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download \
        "lldb-$version" "liblldb-$version" "python3-lldb-$version" \
        "libllvm$version" "libclang-cpp$version") >&2
    mkdir "$work/made"
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/made"
    done
    cat >"$work/made/lldb" <<END
#!/bin/sh
LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu:$folder/usr/lib/llvm-$version/lib \\
    exec $folder/usr/lib/llvm-$version/bin/lldb "\$@"
END
    chmod +x "$work/made/lldb"
    chmod 755 "$work/made"
    mv "$work/made" "$folder"
fi
echo "$folder/lldb"
