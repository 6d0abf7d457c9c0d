#!/usr/bin/env bash
# What `./dev quickstart` shows: a training gang that doesn't notice that the server was killed.
# Starts a cell of one server and three agents in .cache/quickstart, and ends all that it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

muster=${MUSTER_BINARY:-$PWD/build/muster}
venv=$PWD/.cache/venv
dir=$PWD/.cache/quickstart
out=$dir.log
epochs=$(sed -n 's/.*"--epochs".*default=\([0-9]*\).*/\1/p' examples/train/train.py)

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
show_command() { printf '\n\033[1m$ muster %s\033[0m\n' "$*"; "$muster" "$@"; }
fail() { printf '\nquickstart: %s\n' "$*" >&2; exit 1; }

stop_all() {
  "$muster" local --stop --dir "$dir" >/dev/null 2>&1 || true
  if [[ -n ${local_pid:-} ]]; then wait "$local_pid" 2>/dev/null || true; fi
}

# The last line `server PID HOST:PORT` that `muster local` printed.
server_pid() { awk '$1 == "server" {pid = $2} END {print pid}' "$out"; }

# Waits until a command succeeds, and fails with what it was for after so many seconds.
until_true() {
  local seconds=$1 what=$2
  shift 2
  local deadline=$((SECONDS + seconds))
  until "$@"; do
    kill -0 "$local_pid" 2>/dev/null || { cat "$out" >&2; fail "muster local has ended"; }
    ((SECONDS < deadline)) || { tail -n 20 "$out" >&2; fail "waited $seconds s for $what"; }
    sleep 0.2
  done
}

is_ready() { grep -qx ready "$out"; }
has_restarted() { [[ $(server_pid) != "$killed" ]] && "$muster" ls >/dev/null 2>&1; }
half_done() { "$muster" logs "$job" --rank 0 2>/dev/null | grep -q "^epoch *$((epochs / 2))/"; }

if [[ ! -e $venv/ready ]]; then
  say "Fetching numpy, and scikit-learn for its handwritten digits, into .cache/venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps 'numpy>=1.24' 'scikit-learn>=1.2'
  touch "$venv/ready"
fi

say "Starting a cell: one server on an embedded log, three agents of 2 CPUs each"
"$muster" local --stop --dir "$dir" >/dev/null 2>&1 || true
rm -rf "$dir"
: >"$out"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MUSTER_SERVER=127.0.0.1:$port
# The agents' PATH is their members': there, `python` is the one with numpy.
PATH="$venv/bin:$PATH" "$muster" local --dir "$dir" --listen "$MUSTER_SERVER" --agents 3 --cpu 2 --memory 2Gi \
  >"$out" 2>&1 </dev/null &
local_pid=$!
trap stop_all EXIT
until_true 60 "the cell" is_ready
cat "$out"

say "Submitting examples/train/job.yaml: four ranks that sum their gradients over TCP"
job=$("$muster" submit --workdir "$PWD/examples/train" examples/train/job.yaml)
echo "job $job; waiting for epoch $((epochs / 2)) of $epochs"
until_true 300 "half of the $epochs epochs" half_done
show_command logs "$job" --rank 0 | tail -n 3

killed=$(server_pid)
say "Half-way. kill -9 $killed: the server dies; the ranks train on, and muster local starts it again"
kill -9 "$killed"
until_true 60 "the server's restart" has_restarted
echo "the server is back as process $(server_pid), from its log"

"$muster" wait "$job" || fail "the job did not succeed: muster show $job"
show_command logs "$job" --rank 0
show_command show "$job"
show_command events "$job"
say "Same attempt, nothing lost. The log agrees with the state:"
show_command log verify
