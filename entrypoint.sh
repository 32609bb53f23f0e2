#!/usr/bin/env bash
# Starts ReleaseKit in an environment of its own. With arguments it is the command line, without
# any it is the action. Written for bash 3.2 (macOS) as well.
set -euo pipefail
unset CDPATH

# The system's own programs only: PATH may lead to where builds write. NixOS has them in the last
# one. ReleaseKit is started with PATH as it was.
readonly given_path=$PATH
PATH=/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin

readonly python_wanted='3.11 or later'

# A text from elsewhere on one line, and no command to the terminal or the runner in it: the latter
# looks for "##[" anywhere. https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
harmless() { # text
    local LC_ALL=C text=$1
    text=${text//[^[:print:]]/?}
    printf '%s' "${text//[#][#][[]/# #[}"
}

readonly problem_page=https://github.com/org/releasekit-action/blob/v1/docs/problems.md#rk-227

fail() { # message, what to do about it
    local message advice
    message=$(harmless "$1")
    advice=$(harmless "$2")
    printf 'error: %s [RK-227]\n  %s\n  %s\n' "$message" "$advice" "$problem_page" >&2
    if [[ "${GITHUB_ACTIONS:-}" == true ]]; then
        # %0A would be a line end to it.
        printf '::error title=ReleaseKit [RK-227]::%s %s\n' "${message//[%]/%25}" "${advice//[%]/%25}" >&2
        if [[ -n "${GITHUB_OUTPUT:-}" ]]; then
            printf 'result=failure\n' >>"$GITHUB_OUTPUT"
        fi
    fi
    exit 2
}

case $OSTYPE in
msys* | cygwin*)
    fail 'ReleaseKit runs on Linux and macOS, not on Windows.' \
        'Run this job on ubuntu-latest, or start it in WSL.'
    ;;
*) ;;
esac

# Where this file really is, should it have been started through a symlink.
own_directory() {
    local source=${BASH_SOURCE[0]} link
    while [[ -L "$source" ]]; do
        link=$(readlink -- "$source")
        case $link in
        /*) source=$link ;;
        *) source=${source%/*}/$link ;;
        esac
    done
    if [[ $source == */* ]]; then
        cd -P -- "${source%/*}/"
    fi
    pwd -P
}

# Where no build can write and no CI carries a cache to, beside the key of state/seals.py. A cache can
# come from another job, and may lie in the workspace. Prints nothing where there is none.
state_directory() {
    # A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    case ${XDG_STATE_HOME:-} in
    /*) printf '%s/releasekit' "$XDG_STATE_HOME" ;;
    *)
        if [[ -n "${HOME:-}" ]]; then
            printf '%s/.local/state/releasekit' "$HOME"
        fi
        ;;
    esac
}

# A build that can write where XDG_STATE_HOME leads makes an environment there, and the record of it.
refuse_open_state() { # arguments of the command line
    # What is not named takes no time to look at.
    if [[ -z "$state" || "$state" == "${HOME:-}/.local/state/releasekit" ]]; then
        return
    fi
    find_open_places "$@"
    is_closed "$state" ||
        fail "XDG_STATE_HOME leads to where builds may write: $XDG_STATE_HOME." \
            'Name a directory outside of the workspace, of /tmp and of caches, or none.'
}

# Where environments are kept: for the length of the job on a runner, else in the user's state.
environments_directory() {
    local temporary=${RUNNER_TEMP:-}
    if [[ "${GITHUB_ACTIONS:-}" == true ]] && [[ -n "$temporary" ]]; then
        printf '%s/releasekit' "$temporary"
    elif [[ -n "$state" ]]; then
        printf '%s' "$state"
    else
        fail 'HOME is not set, so there is no place for an environment.' 'Set HOME or XDG_STATE_HOME.'
    fi
}

# Of the standard input, in hex, and a dash.
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum
    else
        shasum -a 256
    fi
}

# Sets `interpreter` to that of an environment; fails when it is not there, or its base is gone.
has_interpreter() { # environment
    interpreter=$1/bin/python
    [[ -x "$interpreter" ]]
}

# Of the names and properties of all that is in an environment. The time of each file's last change
# is among them, which a user cannot set, so what was added, changed, replaced or removed since
# shows; to read all of the contents would take 0.2 s. The directory itself may be renamed.
fingerprint() { # environment
    export LC_ALL=C
    cd -P -- "$1" && {
        printf '%s\n' "$digest"
        case $OSTYPE in
        darwin* | *bsd*) find . ! -name . -exec stat -f '%i %Fc %p %u %z %N %Y' {} + ;;
        *) find . ! -name . -printf '%i %C@ %m %U %s %p %l\n' ;;
        esac
    } | sort | sha256
}

# Whether it is there, no link, and of this user.
is_ours() { # path
    [[ -e "$1" && ! -L "$1" && -O "$1" ]]
}

# Whether an environment is what some start has made, and sets `interpreter`.
is_as_made() { # environment
    local made
    has_interpreter "$1" && is_ours "$1" && is_ours "$state" &&
        made=$(fingerprint "$1" 2>/dev/null) && is_ours "$state/made.${made%% *}"
}

# The names of these files say it all: two who start at once do not overwrite each other's. A build
# can set a file's times even where it cannot write, so nothing is read from those.
vouch_for() { # environment
    local made
    made=$(fingerprint "$1") && (umask 077 && mkdir -p -- "$state" && is_ours "$state" &&
        : >"$state/made.${made%% *}") &&
        find "$state" -maxdepth 1 -name 'made.*' -mtime +90 -exec rm -f {} +
} 2>/dev/null

# Prints those directories above the current one that may be the workspace. A build can take a `.git`
# away, so in the user's home each of them may be.
list_above() {
    local home above
    home=$(cd -P -- "${HOME:-/}/" && pwd -P) || home=/
    above=$(pwd -P)
    while above=${above%/*} && [[ -n "$above" ]]; do
        if [[ "$above" == "$home"/?* || -e "$above/.git" ]]; then
            printf '%s\n' "$above"
        fi
    done
}

# Prints the caches of tools, all those among them that the sandbox opens: npx, for one, runs
# programs from there. tests/unit/test_entrypoint_places.py compares the two.
list_caches() {
    local word home=${HOME:-}
    printf '%s\n' "${XDG_CACHE_HOME:-}" "$home/.cache" \
        "${UV_CACHE_DIR:-}" "${PIP_CACHE_DIR:-}" "${CCACHE_DIR:-}" "${SCCACHE_DIR:-}" \
        "${npm_config_cache:-}" "${NPM_CONFIG_CACHE:-}" "$home/.npm" "${npm_config_devdir:-}" \
        "${XDG_DATA_HOME:-}/pnpm/store" "$home/.local/share/pnpm/store" "${COREPACK_HOME:-}" \
        "${YARN_CACHE_FOLDER:-}" "${YARN_GLOBAL_FOLDER:-}" "$home/.yarn/berry" \
        "${BUN_INSTALL_CACHE_DIR:-}" "${BUN_INSTALL:-$home/.bun}/install/cache" \
        "${CARGO_HOME:-$home/.cargo}"/{registry,git} \
        "${CARGO_TARGET_DIR:-}" "${CARGO_BUILD_TARGET_DIR:-}" "${CARGO_BUILD_BUILD_DIR:-}" \
        "${GOCACHE:-}" "${GOPATH:-$home/go}/pkg" "${GOMODCACHE:-}" \
        "${MAVEN_USER_HOME:-$home/.m2}"/{repository,wrapper}
    # Without HOME, bash takes the user's own, as a JVM always does.
    (unset HOME && printf '%s\n' ~/.m2/repository)
    set -f
    for word in ${MAVEN_OPTS:-} ${MAVEN_ARGS:-}; do
        case $word in
        -Dmaven.repo.local=*) printf '%s\n' "${word#*=}" ;;
        *) ;;
        esac
    done
}

# Sets `open_places`: where builds may write (docs/sandbox.md), each without a link in its path.
find_open_places() { # arguments of the command line, of which some may name the workspace
    local place physical
    open_places=()
    while IFS= read -r place; do
        case $place in
        '') continue ;;
        [~]/*) place=${HOME:-}${place#?} ;;
        *) ;;
        esac
        # Were it the root, there would be no other place.
        if [[ -d "$place/" ]] && physical=$(cd -P -- "$place/" && pwd -P) && [[ "$physical" != / ]]; then
            open_places+=("$physical")
        fi
    done < <(
        list_above
        list_caches
        printf '%s\n' . /tmp /dev/shm "${GITHUB_WORKSPACE:-}" "${CI_PROJECT_DIR:-}" \
            "${RELEASEKIT_WORKING_DIRECTORY:-}" "${TMPDIR:-}" "${TEMP:-}" "${TMP:-}" \
            "${RELEASEKIT_STATE_DIRECTORY:-.}"/{dist,logs,work} \
            "${RELEASEKIT_BUILD_SANDBOX_PATHS:-}"
        for place; do
            printf '%s\n' "$place" "${place#*=}"
        done
    )
} 2>/dev/null

# Whether no build can decide what is there: neither it nor any link on the way is in an open place.
is_closed() { # absolute path
    local rest=$1 at='' links=0 name link place
    while [[ -n "$rest" ]]; do
        name=${rest%%/*}
        rest=${rest#"$name"}
        rest=${rest#/}
        case $name in
        '' | .) continue ;;
        ..)
            at=${at%/*}
            continue
            ;;
        *) at=$at/$name ;;
        esac
        for place in ${open_places[@]+"${open_places[@]}"}; do
            case $at/ in
            "$place"/*) return 1 ;;
            *) ;;
            esac
        done
        if [[ -L "$at" ]]; then
            # A system ends at 32 or 40.
            [[ $((links += 1)) -le 40 ]] && link=$(readlink -- "$at") || return 1
            case $link in
            /*) at='' ;;
            *) at=${at%/*} ;;
            esac
            rest=$link/$rest
        fi
    done
}

# Sets `closed_path`: of PATH, what is closed to builds. What is started here runs outside of their
# sandbox and can read the variables of this process, secrets included.
find_closed_path() {
    local directory
    closed_path=
    while IFS= read -r -d : directory; do
        if [[ "$directory" == /* ]] && is_closed "$directory"; then
            closed_path+=${closed_path:+:}$directory
        fi
    done < <(printf '%s:' "$given_path")
    # An empty one would be the current directory.
    closed_path=${closed_path:-/usr/bin:/bin}
}

# Prints each program of that name on `closed_path`, NUL-terminated.
list_programs() { # name
    local directory
    while IFS= read -r -d : directory; do
        if [[ -x "$directory/$1" && ! -d "$directory/$1" ]] && is_closed "$directory/$1"; then
            printf '%s\0' "$directory/$1"
        fi
    done < <(printf '%s:' "$closed_path")
}

# "3.12.4 /the/real/interpreter", or nothing when it is too old or does not run: version managers
# put shims on PATH for versions that are not there.
probe() { # python
    forget_secrets
    "$1" -I -S -c 'import sys
if sys.version_info >= (3, 11):
    print("%d.%d.%d" % sys.version_info[:3], sys.executable)' </dev/null 2>/dev/null || true
}

find_python() {
    local name candidate found
    if [[ -n "${RELEASEKIT_PYTHON_PATH:-}" ]]; then
        found=$(PATH=$given_path && probe "$RELEASEKIT_PYTHON_PATH")
        [[ -n "$found" ]] ||
            fail "input python-path: $RELEASEKIT_PYTHON_PATH is no Python $python_wanted." \
                'Write the path of such an executable.'
        printf '%s' "$found"
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        while IFS= read -r -d '' candidate; do
            found=$(PATH=$closed_path && probe "$candidate")
            if [[ -n "$found" ]]; then
                printf '%s' "$found"
                return
            fi
        done < <(list_programs "$name")
    done
}

fetch_python() { # uv, version
    forget_settings
    forget_secrets
    export UV_PYTHON_INSTALL_DIR=$place/python
    "$1" python install --quiet --no-config "$2" >&2 &&
        "$1" python find --no-config --no-project --managed-python "$2"
}

find_uv() {
    local uv=''
    if [[ -n "${RELEASEKIT_UV_PATH:-}" ]]; then
        (PATH=$given_path && command -v "$RELEASEKIT_UV_PATH") ||
            fail "input uv-path: $RELEASEKIT_UV_PATH cannot be run." \
                'Write the path of a uv executable.'
    else
        IFS= read -r -d '' uv < <(list_programs uv) || true
        printf '%s' "$uv"
    fi
}

# Indexes, proxies and certificates of the caller stay; what would change where packages go, or
# which ones, does not.
forget_settings() {
    PATH=$closed_path
    unset PYTHONHOME PYTHONPATH VIRTUAL_ENV
    unset PIP_CONSTRAINT PIP_DRY_RUN PIP_NO_BINARY PIP_NO_DEPS PIP_PREFIX PIP_PYTHON PIP_REPORT \
        PIP_REQUIREMENT PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER
    unset UV_BUILD_CONSTRAINT UV_CONFIG_FILE UV_CONSTRAINT UV_EXCLUDE UV_EXCLUDE_NEWER \
        UV_NO_BINARY UV_OVERRIDE UV_PROJECT UV_PYTHON UV_REQUIRE_HASHES UV_SYSTEM_PYTHON \
        UV_PYTHON_CACHE_DIR UV_VENV_SEED UV_WORKING_DIRECTORY
    # Builds may write to the user's caches and to /tmp. What a cache has unpacked is not compared
    # with the digests of the lock file again.
    export UV_CACHE_DIR=$building/uv PIP_NO_CACHE_DIR=1 TMPDIR=$building
    # By variable: an address does not belong into a list of processes.
    if [[ -n "${RELEASEKIT_INDEX_URL:-}" ]]; then
        export PIP_INDEX_URL=$RELEASEKIT_INDEX_URL UV_DEFAULT_INDEX=$RELEASEKIT_INDEX_URL
        unset PIP_EXTRA_INDEX_URL PIP_NO_INDEX UV_INDEX UV_EXTRA_INDEX_URL UV_INDEX_URL UV_NO_INDEX
    fi
}

# What fetches Python and packages has no use for the secrets of a release. What an index may ask
# for stays; a keyring can need a cloud's keys for it.
forget_secrets() {
    local name
    for name in $(compgen -e); do
        case $name in
        PIP_* | UV_* | AWS_*) ;;
        RELEASEKIT_* | ACTIONS_* | *TOKEN* | *PASSWORD* | *PASSPHRASE* | *SECRET* | *API_KEY* | \
            *PRIVATE_KEY* | *_AUTH)
            unset "$name"
            ;;
        *) ;;
        esac
    done
}

# One --find-links for each line of the input; they are paths, which may hold spaces.
set_find_links() {
    local line
    find_links=()
    while IFS= read -r line; do
        if [[ -n "$line" ]]; then
            find_links+=(--find-links "$line")
        fi
    done <<<"${RELEASEKIT_FIND_LINKS:-}"
}

# Both ways compile everything, so that no start writes into an environment.
install_with_uv() { # uv, python, environment
    "$1" venv --quiet --no-config --no-project --python "$2" "$3" &&
        "$1" pip sync --quiet --no-config --link-mode hardlink --compile-bytecode \
            --require-hashes --only-binary :all: ${find_links[@]+"${find_links[@]}"} \
            --python "$3" "$lock"
} >&2

# With the pip that is there: one inside each environment takes `venv` three seconds, and nothing
# uses it.
install_with_pip() { # python, environment
    local site
    export PIP_ROOT_USER_ACTION=ignore
    if "$1" -I -c 'import pip' 2>/dev/null; then
        "$1" -I -m venv --without-pip "$2" && has_interpreter "$2" &&
            site=$("$interpreter" -I -c 'import sys, sysconfig
sys.stdout.write(sysconfig.get_path("purelib"))') &&
            pip_install "$1" --target "$site"
    else
        "$1" -I -m venv "$2" && has_interpreter "$2" && pip_install "$interpreter"
    fi
} >&2

pip_install() { # python, options
    local python=$1
    shift
    "$python" -I -m pip --disable-pip-version-check --no-input --quiet install \
        --require-hashes --only-binary :all: --no-deps --no-user --compile "$@" \
        ${find_links[@]+"${find_links[@]}"} -r "$lock"
}

# Whoever is killed leaves only this behind, and nothing half made.
begin_building() {
    (umask 077 && mkdir -p -- "$place")
    find "$place" -maxdepth 1 -name 'building.*' -mmin +60 -exec rm -rf {} + || true
    building=$(mktemp -d "$place/building.XXXXXXXX")
    trap 'rm -rf -- "$building"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Made beside its place and renamed into it: of two who start at once the second finds the first
# one's and drops its own.
make_environment() { # uv, python, environment
    local what='making its environment,'
    if [[ -e "$3" || -L "$3" ]]; then
        what='its environment is not as it was made; making it again,'
        mv -- "$3" "$building/replaced" || true
    fi
    printf 'ReleaseKit: %s %s\n' "$what" "$(harmless "$3")" >&2
    (
        forget_settings
        set_find_links
        forget_secrets
        if [[ -z "$1" ]] || ! install_with_uv "$1" "$2" "$building/environment"; then
            rm -rf -- "$building/environment"
            install_with_pip "$2" "$building/environment"
        fi
    ) || fail 'the environment for ReleaseKit could not be made; the reason stands above.' \
        'It needs uv, or Python with venv (Debian: python3-venv), and a package index it can reach.'
    # Its files would not be what they were when uv's, linked to them, are removed later.
    rm -rf -- "$building/uv"
    vouch_for "$building/environment" ||
        printf 'ReleaseKit: no record of it can be kept in %s; the next start makes it again\n' \
            "$(harmless "${state:-HOME, which is not set}")" >&2
    (
        forget_secrets
        "$2" -I -S -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' \
            "$building/environment" "$3"
    ) 2>/dev/null || is_as_made "$3" ||
        fail "the environment for ReleaseKit could not be moved to $3." 'Is the disk full?'
}

# Any environment made from this very lock file will do, unless a certain Python is asked for.
# That spares starting one to see which it is, which takes a version manager's shim 0.15 s.
find_environment() {
    local candidate
    if [[ -n "${RELEASEKIT_PYTHON_PATH:-}" ]]; then
        return 1
    fi
    for candidate in "$place/$digest"-*; do
        if is_as_made "$candidate"; then
            return
        fi
    done
    return 1
}

find_or_make_environment() { # arguments of the command line
    local found uv version python
    local advice='One in the workspace, in /tmp or in a cache is not taken: builds may write there. '
    advice+='Install one elsewhere, or write its path as the input python-path.'
    find_open_places "$@"
    find_closed_path
    found=$(find_python)
    uv=$(find_uv)
    version=${found%% *}
    python=${found#* }
    begin_building
    if [[ -z "$found" ]]; then
        [[ -n "$uv" ]] || fail "there is no Python $python_wanted on PATH, and no uv to fetch one." \
            "$advice"
        version=3.13
        python=$(fetch_python "$uv" "$version") ||
            fail "there is no Python $python_wanted on PATH, and uv could not fetch one." \
                "$advice"
    fi
    if ! is_as_made "$place/$digest-$version"; then
        make_environment "$uv" "$python" "$place/$digest-$version"
        has_interpreter "$place/$digest-$version"
    fi
    rm -rf -- "$building"
    trap - EXIT INT TERM
}

here=$(own_directory)
# Verifying takes more packages than a release, which gets none of them.
case ${1:-${RELEASEKIT_MODE:-}} in
verify) lock=$here/requirements-verify.lock ;;
*) lock=$here/requirements.lock ;;
esac
state=$(state_directory)
place=$(environments_directory)
digest=$(sha256 <"$lock") || fail "$lock cannot be read, or there is no sha256sum or shasum in $PATH." \
    'Check out the action again; of the system, it needs these programs and find.'
digest=${digest:0:16}
refuse_open_state "$@"
if ! find_environment; then
    find_or_make_environment "$@"
fi
# exec: the runner signals only the process it started, and that has to be Python.
# -I and -X utf8: nothing in the caller's directory or environment may change how it starts.
PATH=$given_path
exec "$interpreter" -I -u -X utf8 "$here/src/__main__.py" "$@"
