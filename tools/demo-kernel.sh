#!/bin/bash
# Starts a virtual machine with Debian's kernel, in which a program appends to a log; finds out with
# darc why some of its writes take long; and ends the machine. All that a person would type is shown.
set -eu

bin=.venv/bin
analyse=(
    -q -batch
    -ex 'darc start do_iter_write --task syncwrite --start-ops 500 --peak last'
    -ex continue
    -ex 'darc report --require root-cause'
)

echo '$ darc-vm start --workload syncwrite'
started=$("$bin/darc-vm" start --workload syncwrite)
name=${started%%:*}
trap '"$bin/darc-vm" stop "$name"' EXIT
echo "$started"
connect=$(sed -n 2p <<<"$started")
echo "\$ ${connect# *}$(printf ' %q' "${analyse[@]}")"
# The line is meant for a shell, quoting and all.
eval "$bin/${connect#"${connect%%[![:space:]]*}"}"' "${analyse[@]}"'
