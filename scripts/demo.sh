#!/usr/bin/env bash
# `make demo`: a language model tells a story on a simulated chip, then every other part of Tilewright in a line.
# What the parts print in full goes to build/demo.log, and with TABLES=1 to the terminal as well.
set -euo pipefail
cd "$(dirname "$0")/.."

tilewright=.venv/bin/tilewright
model=examples/language_model/model.npz
network=examples/models/tiny_cnn_int8.onnx
log=build/demo.log

# part NAME SCRIPT COMMAND...: runs a command and prints the last line that sed makes of its output.
part() {
    local name=$1 script=$2 output
    shift 2
    output=$("$@" 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }
    printf '$ %s\n%s\n\n' "$*" "$output" >>"$log"
    [ -z "${TABLES:-}" ] || printf '%s\n' "$output"
    printf '%-9s %s\n' "$name" "$(sed -nE "$script" <<<"$output" | tail -n 1)"
}

parts() {
    part here '/tokens.s/p' "$tilewright" generate "$model" --prompt "Once upon a time" -o build/story
    part prove '/pass of/p' "$tilewright" test examples/models
    part compile '/^arena/p' "$tilewright" compile "$network" -o build/demo
    part chip '/cycles predicted/p' "$tilewright" compile "$network" --platform siracusa -o build/demo_chip
    make --no-print-directory -s -C build/demo_chip >>"$log"
    part simulate '/cycles \(/p' "$tilewright" sim build/demo_chip/network --platform siracusa --stats --profile \
        --trace build/demo_chip/trace.json
    part snitch '/cycles simulated/p' "$tilewright" run "$network" --platform snitch
    part mempool '/cycles simulated/p' "$tilewright" run "$network" --platform mempool
    .venv/bin/python examples/encoders.py mobilebert --layers 1 --output build/demo_encoder >>"$log"
    part ita '/cycles simulated/p' "$tilewright" run build/demo_encoder/mobilebert.onnx --platform snitch-ita
    part diff '/no layer|first/p' "$tilewright" diff "$network"
    part cost 's/.* total[ │]+([0-9,]+)[ │]+([^│]*[^ │])[ │]+([0-9,]+) .*/\1 products in \3 cycles with \2 on a TPU-like array/p' \
        "$tilewright" cost "$network" --machine tpu-like
    part schedule 's/(cycles, [^;]*); ([^;]*);.*/\1 on three engines; \2/p' \
        "$tilewright" schedule "$network" --platform examples/many_core/trio.yaml
}

mkdir -p build
: >"$log"
parts=$(mktemp)
# The parts run while the story is told, each in its place once that has ended.
COLUMNS=120 parts >"$parts" 2>&1 &
working=$!
trap 'kill "$working" 2>/dev/null || true; rm -f "$parts"' EXIT

echo "A language model of our own, compiled to C, on a simulated Siracusa:"
echo
"$tilewright" generate "$model" --prompt "Once upon a time" --platform siracusa -o build/story_chip
echo
status=0
wait "$working" || status=$?
cat "$parts"
[ "$status" -eq 0 ] || exit "$status"
cat <<END

build/story/story            tells stories on this computer: build/story/story "One day" --temperature 0.8 --seed 7
build/story_chip/story.c     the same model for the chip
build/demo/report.html       graph, memory map and layers of $network; network.h is its C interface
build/demo_chip/trace.json   what every core and the DMA did in each cycle, for ui.perfetto.dev
$log               all tables (make demo TABLES=1 prints them, too)
Next: $tilewright run YOUR_MODEL.onnx, generate ... --report PAGE.html, and docs/getting_started.md
END
