#!/bin/bash
# Installs what 'make soak' builds and runs its programs with, where it is missing (Debian).
set -eu

packages=(git perl tcl xz-utils zstd zlib1g-dev ca-certificates dpkg-dev debian-archive-keyring)

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install -y --no-install-recommends "${missing[@]}"
}
echo "soak: installing ${missing[*]}"
install || { "${root[@]}" apt-get -qq update && install; }
