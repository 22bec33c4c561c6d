#!/usr/bin/env bash
# Runs the fuzz targets of a build, two at a time: fuzz_model for SECONDS, the others for SECONDS together.
# Usage: run.sh BUILD SECONDS CORPUS: CORPUS keeps inputs by target, and what failed. Ends with 1 if anything did.
set -u
TARGETS=$1/tests/fuzz SECONDS_EACH=$2 CORPUS=$3
HERE=$(dirname "$0")
SMALL=(c_api plan tuning cache orders)
export PHONEBIT_OPENCL_LIBRARY=/none  # a name that does not exist turns OpenCL off
mkdir -p "$CORPUS"/{model,failed} "${SMALL[@]/#/$CORPUS/}"
cp "$HERE"/../golden/v1/*.pbit "$HERE"/seeds/*.pbit "$CORPUS/model"
cp "$HERE/../../bnn_kernels/tuning.table" "$CORPUS/tuning"
cp "$HERE/seeds/orders.txt" "$CORPUS/orders"

fuzz() {  # fuzz NAME SECONDS OPTIONS...
  "$TARGETS/fuzz_$1" "$CORPUS/$1" -max_total_time="$2" -timeout=20 -artifact_prefix="$CORPUS/failed/$1-" \
    -print_final_stats=1 -verbosity=0 "${@:3}" >"$CORPUS/$1.log" 2>&1
  local status=$?
  echo "fuzz_$1: $(sed -n 's/^stat::number_of_executed_units: //p' "$CORPUS/$1.log") inputs, status $status"
  [ "$status" = 0 ] || tail -n 60 "$CORPUS/$1.log"
  return "$status"
}

fuzz model "$SECONDS_EACH" -max_len=131072 &
model=$!
failed=0
for name in "${SMALL[@]}"; do
  fuzz "$name" $((SECONDS_EACH / ${#SMALL[@]})) -max_len=4096 -len_control=0 || failed=1
done
wait "$model" || failed=1
exit "$failed"
