#!/bin/sh
# An agent that says the lines which it finds in the pipe $1/say, and writes what
# it hears into $1/heard. Its helper's process id is in $1/pids, beside its own.
exec 3<>"$1/say"
cat <&3 &
echo "$$ $!" >"$1/pids"
exec cat >>"$1/heard"
