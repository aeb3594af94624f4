#!/bin/bash
# Starts a virtual machine with Debian's kernel, in which a program reads from a pipe; finds out with
# darc why some of its reads take long; and ends the machine. All that a person would type is shown.
set -eu

bin=.venv/bin
analyse=(
    -q -batch
    -ex 'darc start vfs_read --task piperead --peak last --start-ops 1000'
    -ex continue
    -ex 'darc report --require root-cause'
)

echo '$ darc-vm start --workload piperead'
started=$("$bin/darc-vm" start --workload piperead)
name=${started%%:*}
trap '"$bin/darc-vm" stop "$name"' EXIT
echo "$started"
connect=$(sed -n 2p <<<"$started")
connect=${connect#"${connect%%[![:space:]]*}"}
echo "\$ $connect ${analyse[*]@Q}"
# The line is meant for a shell, quoting and all.
eval "$bin/$connect"' "${analyse[@]}"'
