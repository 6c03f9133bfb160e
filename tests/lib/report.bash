# Counting and showing results; sourced by tests/run. Every stage adds what it ran to three totals.
PASSED=0 FAILED=0 SKIPPED=0

# count PASSED FAILED SKIPPED: adds to the totals and remembers the stage's own sums.
count() {
    PASSED=$((PASSED + $1)) FAILED=$((FAILED + $2)) SKIPPED=$((SKIPPED + $3))
    STAGE_PASSED=$((STAGE_PASSED + $1)) STAGE_FAILED=$((STAGE_FAILED + $2)) STAGE_SKIPPED=$((STAGE_SKIPPED + $3))
}

# check LABEL COMMAND...: one test that is a command; its output goes to a log, and is shown if it fails (returns 1).
check() {
    local label=$1 log status
    shift
    log=$LOGS/${label//[^A-Za-z0-9._-]/_}.log
    "$@" >"$log" 2>&1 </dev/null && { count 1 0 0; return 0; }
    status=$?
    count 0 1 0
    echo "FAILED $label (exit $status, $log)"
    tail -n 40 "$log" | sed 's/^/    /'
    return 1
}

# skipped LABEL REASON: a test that cannot run here.
skipped() {
    count 0 0 1
    echo "skipped $1: $2"
}

# stage NAME FUNCTION [ARG...]: runs a stage and prints its sums and its time.
stage() {
    local name=$1 started=$SECONDS
    shift
    STAGE_PASSED=0 STAGE_FAILED=0 STAGE_SKIPPED=0
    echo "== $name"
    "$@"
    echo "   $name: $STAGE_PASSED passed, $STAGE_FAILED failed, $STAGE_SKIPPED skipped ($((SECONDS - started)) s)"
}

# count_tap FILE STATUS: adds a TAP log. A test that was planned and never reported is a failure, and so is a status
# that no failure explains. Shows what failed.
count_tap() {
    local file=$1 status=$2 sums
    sums=$(awk -v status="$status" '
        /^1\.\.[0-9]+/ { planned += substr($1, 4) }
        /^ok / { /# skip/ ? skipped++ : passed++ }
        /^not ok / { failed++ }
        END {
            lost = planned - passed - skipped - failed
            if (lost > 0) failed += lost
            if (status != 0 && failed == 0) failed = 1
            print passed + 0, failed + 0, skipped + 0
        }' "$file")
    # shellcheck disable=SC2086
    count $sums
    if [ "$(cut -d' ' -f2 <<<"$sums")" != 0 ]; then
        echo "FAILED in $file (exit $status)"
        awk '/^not ok / { on = 1; n = 0 } /^ok / { on = 0 } on && n++ < 40 { print "    " $0 }' "$file"
        grep -qE '^not ok ' "$file" || tail -n 15 "$file" | sed 's/^/    /'
    fi
    awk '/^ok .*# skip/ { sub(/^ok [0-9]+ /, ""); print "skipped " $0 }' "$file"
}

# count_meson BUILDDIR STATUS: adds the results of `meson test`: each test function of a cmocka program counts, a
# program without such lines counts as one, and one that ends badly without naming a failed function as a failure.
count_meson() {
    local log=$1/meson-logs/testlog.json sums
    if [ ! -s "$log" ]; then
        [ "$2" = 0 ] && return 0
        count 0 1 0
        echo "FAILED meson test in $1 (exit $2)"
        return 0
    fi
    sums=$(jq -rs '
        def lines(re): [(.stdout // "") | split("\n")[] | select(test(re))] | length;
        map({ ok: lines("^ok [0-9]+(?!.*# SKIP)"), bad: lines("^not ok [0-9]+"), skip: lines("^ok [0-9]+.*# SKIP"),
              good: (.result == "OK" or .result == "EXPECTEDFAIL"), skipped: (.result == "SKIP") })
        | map(if .skipped then { ok: 0, bad: 0, skip: 1 }
              elif .good and .ok + .skip == 0 then { ok: 1, bad: 0, skip: 0 }
              elif .good or .bad > 0 then .
              else .bad = 1 end)
        | "\(map(.ok) | add // 0) \(map(.bad) | add // 0) \(map(.skip) | add // 0)"' "$log")
    # shellcheck disable=SC2086
    count ${sums:-0 1 0}
    jq -r 'select(.result as $r | ["OK", "EXPECTEDFAIL", "SKIP"] | index($r) | not)
           | "FAILED \(.name): \(.result) after \(.duration | floor) s",
             (((.stdout // "") + (.stderr // "")) | split("\n")
              | map(select(test("^ok [0-9]+") | not)) | .[-30:][] | "    " + .)' "$log"
}
