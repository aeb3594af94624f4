#!/bin/bash
# Prints the path of the Python that is embedded in gdb, so that .venv is made with the same one:
# what pip installs there must load inside gdb. Another python3 may come first in PATH.
set -eu

ask='python import sys; print(f"{sys.base_exec_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}")'
for python in "$(gdb -nx -batch -ex "$ask" 2>/dev/null || true)" /usr/bin/python3; do
    if [ -x "$python" ] && "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$python"
        exit 0
    fi
done
echo "setup: no python3 with the venv module for gdb; install python3-venv" >&2
exit 1
