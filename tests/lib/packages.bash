# Installs Debian packages; sourced by tests/run and mnt-example/run.

# missing_packages GROUP...: the packages of tests/lib/packages in these groups that are not installed.
missing_packages() {
    local list group package
    list=$(dirname "${BASH_SOURCE[0]}")/packages
    while read -r group package; do
        [[ " $* " == *" $group "* ]] || continue
        # vim-tiny is one of several packages that bring vi
        [ "$package" = vim-tiny ] && command -v vi >/dev/null && continue
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done < <(grep -v '^#' "$list")
}

# install_packages GROUP...: installs what is missing; does nothing, and needs no network, when all is there.
install_packages() {
    local missing apt=(apt-get)
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} = 0 ] && return 0
    if ! command -v apt-get >/dev/null; then
        echo "please install: ${missing[*]}" >&2
        return 1
    fi
    [ "$(id -u)" = 0 ] || apt=(sudo apt-get)
    export DEBIAN_FRONTEND=noninteractive
    "${apt[@]}" update -qq && "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
