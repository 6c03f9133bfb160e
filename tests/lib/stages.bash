# The stages of tests/run; sourced by it. Each runs its tests and counts them (report.bash).
SHARED=${KAFKAFS_SHARED:-$ROOT/../shared}
# what of the recordings and operators' cases beside the clone is run; empty: all
CASES=${CASES-}
GOLDEN=${GOLDEN-}
# files of end-to-end tests that also run with a daemon built with sanitizers
ASAN_E2E=(create delete delete_waits brokers disks files values writing state raw mount dump)
TSAN_E2E=(create delete brokers writing events)
# unit tests with threads
TSAN_UNIT=(controller_thread engine engine_disks fuse_lines fuse_notify fuse_raw fuse_state fuse_stream fuse_tree fuse_write
    intake journal queue settle store)

mounts_below() {
    awk -v below="$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac
}

# ---- style -----------------------------------------------------------------------------------------------------------

stage_style() {
    check clang-format formatted
    check file-length short_files
    check shell-syntax shell_syntax
    check kafka-issues issues_are_tested
}
formatted() {
    git_files '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
}
# no file over 600 lines: one idea a file
short_files() {
    local long
    long=$(git_files '*.c' '*.h' '*.py' '*.bash' '*.bats' '*.sh' | xargs -0 wc -l | awk '$1 > 600 && $2 != "total"')
    [ -z "$long" ] || { echo "$long"; return 1; }
}
shell_syntax() {
    local file
    for file in tests/run tests/*/run tests/lib/* mnt-example/run mnt-example/*.sh .ci/run; do
        ! grep -qs '^#!.*bash\|\.bash$' <(head -n 1 "$file"; echo "$file") || bash -n "$file" || return 1
    done
}
# every test that tests/kafka-issues.md names exists
issues_are_tested() {
    local row part word file missing=0
    while IFS='|' read -r _ _ _ row; do
        while read -r part; do
            file=
            for word in ${part//[,|]/ }; do
                case $word in
                test_*.c) file=tests/unit/$word ;;
                tests/*.bats) file=$word ;;
                test_*) [ -z "$file" ] && file=tests/unit/$word.c || grep -q "void $word(void \*\*" "$file" ;;
                *_*) [ -z "$file" ] || grep -q "void \(test_\)\?$word(void \*\*" "$file" ;;
                esac && { [ -z "$file" ] || [ -f "$file" ]; } || { echo "$file: no $word"; missing=1; }
            done
        done < <(tr ';:' '\n\n' <<<"$row")
    done < <(grep '^| ' tests/kafka-issues.md)
    [ $missing = 0 ]
}
# git_files PATTERN...: the files of the project, also those not yet committed; in a tree without git, all files.
git_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z -co --exclude-standard -- "$@"
    else
        local pattern args=()
        for pattern; do args+=(-o -name "$pattern"); done
        find . -path './build*' -prune -o -type f \( "${args[@]:1}" \) -print0
    fi
}

# ---- building --------------------------------------------------------------------------------------------------------

# build DIR [MESON-OPTION...]
build() {
    local dir=$1
    shift
    [ -f "$dir/build.ninja" ] || meson setup "$dir" "$@" || return 1
    ninja -C "$dir"
}
stage_build() {
    # without a program to test there is nothing more to say
    check build build build || { echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"; exit 1; }
}

# ---- unit tests ------------------------------------------------------------------------------------------------------

stage_unit() {
    unit_tests build
}
# unit_tests DIR [TEST...]: all, or these.
unit_tests() {
    local dir=$1 status=0
    shift
    rm -f "$dir/meson-logs/testlog.json"
    CMOCKA_MESSAGE_OUTPUT=tap meson test -C "$dir" --no-rebuild --num-processes "$JOBS" --timeout-multiplier 5 "$@" \
        >"$LOGS/unit-$(basename "$dir").log" 2>&1 </dev/null || status=$?
    count_meson "$dir" "$status"
}

# ---- the simulated cluster -------------------------------------------------------------------------------------------

# 20,000 seeds in under two minutes; and mistakes made on purpose, each of which it must see
stage_simulation() {
    local seeds=20000
    [ "$LONG" = 0 ] || seeds=1000000
    check simulation build/tests/fixture/sim --seeds "$seeds"
    check mistakes env JOBS="$JOBS" tests/fixture/mistakes.py build
}

# ---- end to end ------------------------------------------------------------------------------------------------------

# e2e LABEL KAFKAFS FILE...: runs the files, JOBS at a time.
e2e() {
    # only ends what hangs: on one core beside 25 others the slowest test took 70 s, and with a sanitizer twice that
    local label=$1 kafkafs=$2 seconds=300 file name running=0
    shift 2
    if [ ! -c /dev/fuse ]; then
        skipped "e2e-$label" "no /dev/fuse"
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        skipped "e2e-$label" "the end-to-end tests mount log dirs and switch users: needs root"
        return
    fi
    for file; do
        name=$LOGS/e2e-$label-$(basename "$file" .bats)
        [ "$running" -lt "$JOBS" ] || { wait -n; running=$((running - 1)); }
        {
            KAFKAFS=$kafkafs BATS_TEST_TIMEOUT=$seconds timeout -k 10 $((seconds * 20)) bats --tap --timing "$file" \
                >"$name.tap" 2>&1 </dev/null
            echo $? >"$name.status"
        } &
        running=$((running + 1))
    done
    wait
    for file; do
        name=$LOGS/e2e-$label-$(basename "$file" .bats)
        count_tap "$name.tap" "$(cat "$name.status")"
    done
}
stage_e2e() {
    local files=("${FILES[@]}")
    [ ${#files[@]} != 0 ] || files=("$ROOT"/tests/e2e/*.bats)
    e2e plain "$ROOT/build/kafkafs" "${files[@]}"
}

# e2e_of LABEL KAFKAFS NAME...: the same with files named without directory and ending.
e2e_of() {
    local args=("${@:1:2}") name
    shift 2
    for name; do args+=("$ROOT/tests/e2e/$name.bats"); done
    e2e "${args[@]}"
}

# ---- sanitizers ------------------------------------------------------------------------------------------------------

stage_asan() {
    check build-asan build build-asan -Db_sanitize=address,undefined || return
    unit_tests build-asan
    e2e_of asan "$ROOT/build-asan/kafkafs" "${ASAN_E2E[@]}"
}
stage_tsan() {
    check build-tsan build build-tsan -Db_sanitize=thread || return
    # GLib's slices pass memory between threads under locks that the sanitizer cannot see
    G_SLICE=always-malloc unit_tests build-tsan "${TSAN_UNIT[@]}"
    G_SLICE=always-malloc e2e_of tsan "$ROOT/build-tsan/kafkafs" "${TSAN_E2E[@]}"
}

# ---- the example and the README --------------------------------------------------------------------------------------

stage_example() {
    local round
    for round in 1 2; do
        check "example-$round" mnt-example/run
    done
    check readme-session tests/lib/readme-session
}

# ---- recordings and operators' cases that may lie beside the clone ---------------------------------------------------

# outside LABEL COMMAND...: runs it; its last line is `N passed, N failed`; what begins with FAIL is a failure, explained by
# the indented lines below it; and a line says what is `skipped`, and why.
outside() {
    local label=$1 sums line
    shift
    "$@" >"$LOGS/$label.log" 2>&1 </dev/null
    if sums=$(tail -n 1 "$LOGS/$label.log" | grep -oE '^[0-9]+ passed, [0-9]+ failed'); then
        count "${sums%% *}" "$(cut -d' ' -f3 <<<"$sums")" 0
    else
        count 0 1 0
        echo "FAILED $label gave no result: $LOGS/$label.log"
        tail -n 15 "$LOGS/$label.log" | sed 's/^/    /'
    fi
    # each failure with what is said below it
    awk '/^[^ ]/ { on = /^FAIL/; n = 0 } on && n++ < 40 { print "    " $0 }' "$LOGS/$label.log"
    while read -r _ line; do skipped "$label" "$line"; done < <(grep -E '^ *skipped:' "$LOGS/$label.log")
}
stage_cases() {
    if [ ! -x "$SHARED/cases/run" ]; then
        skipped cases "no operators' cases in $SHARED/cases"
        return
    fi
    # shellcheck disable=SC2086
    outside cases "$SHARED/cases/run" build/kafkafs "$SHARED/cases/open.json" $CASES
}
stage_golden() {
    if [ ! -x "$SHARED/golden/replay" ]; then
        skipped golden "no recordings of a real Kafka in $SHARED/golden"
        return
    fi
    # shellcheck disable=SC2086
    outside golden "$SHARED/golden/replay" build/kafkafs "$SHARED/golden/open.json" $GOLDEN
}

# ---- faults and fuzzing ----------------------------------------------------------------------------------------------

stage_faults() {
    outside faults env LONG="$LONG" tests/fault/run build/kafkafs
}
stage_fuzz() {
    local target name seconds=60 running=0 names=()
    [ "$LONG" = 0 ] || seconds=3600
    check build-fuzz build_fuzz || return
    for target in build-fuzz/tests/fuzz/fuzz_*; do
        [ -x "$target" ] && [ ! -d "$target" ] || continue
        name=$(basename "$target")
        names+=("$name")
        [ "$running" -lt "$JOBS" ] || { wait -n; running=$((running - 1)); }
        {
            fuzz "$target" "tests/fuzz/corpus/${name#fuzz_}" "$seconds" >"$LOGS/$name.out" 2>&1 </dev/null
            echo $? >"$LOGS/$name.status"
        } &
        running=$((running + 1))
    done
    wait
    for name in "${names[@]}"; do
        check "$name" sh -c "tail -n 40 '$LOGS/$name.out'; exit $(cat "$LOGS/$name.status")"
    done
}
build_fuzz() {
    [ -f build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz -Dfuzz=true -Dwerror=false -Db_sanitize=address,undefined \
        -Db_lundef=false -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined' || return 1
    ninja -C build-fuzz fuzz
}
# fuzz TARGET CORPUS SECONDS: what it finds on the way is kept apart from the corpus in the repository
fuzz() {
    local found
    found=$(mktemp -d)
    "$1" -max_total_time="$3" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$LOGS/" "$found" "$2"
}

# ---- what the tests left behind --------------------------------------------------------------------------------------

stage_leftovers() {
    check mounts-left no_mounts_left
    check processes-left processes_end
}
no_mounts_left() {
    local left
    left=$(mounts_below "$SCRATCH")
    [ -z "$left" ] || { echo "$left"; return 1; }
}
# the guardian of a daemon that was killed ends a moment after it
processes_end() {
    local _
    for _ in {1..100}; do
        ! no_processes_left >/dev/null || return 0
        sleep 0.1
    done
    no_processes_left
}
# processes with arguments below SCRATCH
no_processes_left() {
    local process left=
    for process in /proc/[0-9]*; do
        if [[ $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) == *"$SCRATCH"* ]]; then
            left+="${process#/proc/}: $(tr '\0' ' ' <"$process/cmdline")"$'\n'
        fi
    done 2>/dev/null
    [ -z "$left" ] || { echo "$left"; return 1; }
}
