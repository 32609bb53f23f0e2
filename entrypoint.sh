#!/usr/bin/env bash
# Starts ReleaseKit in an environment of its own. With arguments it is the command line, without
# any it is the action. Written for bash 3.2 (macOS) and the bash of Git for Windows as well.
set -euo pipefail
unset CDPATH

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

# Where environments are kept: for the length of the job on a runner, else in the user's cache.
cache_directory() {
    if [[ "${GITHUB_ACTIONS:-}" == true ]] && [[ -n "${RUNNER_TEMP:-}" ]]; then
        # On Windows it is written D:\a\_temp.
        if command -v cygpath >/dev/null 2>&1; then
            printf '%s/releasekit' "$(cygpath -u "$RUNNER_TEMP")"
        else
            printf '%s/releasekit' "$RUNNER_TEMP"
        fi
        return
    fi
    # A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    case ${XDG_CACHE_HOME:-} in
    /*) printf '%s/releasekit' "$XDG_CACHE_HOME" ;;
    *)
        [[ -n "${HOME:-}" ]] || fail 'HOME is not set, so there is no place for an environment.' \
            'Set HOME or XDG_CACHE_HOME.'
        printf '%s/.cache/releasekit' "$HOME"
        ;;
    esac
}

lock_digest() {
    local digest
    if command -v sha256sum >/dev/null 2>&1; then
        digest=$(sha256sum <"$lock") || return
    else
        digest=$(shasum -a 256 <"$lock") || return
    fi
    printf '%s' "${digest:0:16}"
}

# Sets `interpreter` to that of an environment; fails when it is not there, or its base is gone.
has_interpreter() { # environment
    for interpreter in "$1/bin/python" "$1/Scripts/python.exe"; do
        if [[ -x "$interpreter" ]]; then
            return
        fi
    done
    return 1
}

# "3.12.4 /the/real/interpreter", or nothing when it is too old or does not run: version managers
# put shims on PATH for versions that are not there.
probe() { # python
    "$1" -I -S -c 'import sys
if sys.version_info >= (3, 11):
    print("%d.%d.%d" % sys.version_info[:3], sys.executable)' </dev/null 2>/dev/null || true
}

find_python() {
    local candidate found
    if [[ -n "${RELEASEKIT_PYTHON_PATH:-}" ]]; then
        found=$(probe "$RELEASEKIT_PYTHON_PATH")
        [[ -n "$found" ]] ||
            fail "input python-path: $RELEASEKIT_PYTHON_PATH is no Python $python_wanted." \
                'Write the path of such an executable.'
        printf '%s' "$found"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1; then
            found=$(probe "$candidate")
            if [[ -n "$found" ]]; then
                printf '%s' "$found"
                return
            fi
        fi
    done
}

fetch_python() { # uv, version
    forget_settings
    forget_secrets
    export UV_PYTHON_INSTALL_DIR=$cache/python
    "$1" python install --quiet --no-config "$2" >&2 &&
        "$1" python find --no-config --no-project --managed-python "$2"
}

find_uv() {
    if [[ -n "${RELEASEKIT_UV_PATH:-}" ]]; then
        command -v "$RELEASEKIT_UV_PATH" ||
            fail "input uv-path: $RELEASEKIT_UV_PATH cannot be run." \
                'Write the path of a uv executable.'
    else
        command -v uv || true
    fi
}

# Indexes, proxies and certificates of the caller stay; what would change where packages go, or
# which ones, does not.
forget_settings() {
    unset PYTHONHOME PYTHONPATH VIRTUAL_ENV
    unset PIP_CONSTRAINT PIP_DRY_RUN PIP_NO_BINARY PIP_NO_DEPS PIP_PREFIX PIP_PYTHON PIP_REPORT \
        PIP_REQUIREMENT PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER
    unset UV_BUILD_CONSTRAINT UV_CONFIG_FILE UV_CONSTRAINT UV_EXCLUDE UV_EXCLUDE_NEWER \
        UV_NO_BINARY UV_OVERRIDE UV_PROJECT UV_PYTHON UV_REQUIRE_HASHES UV_SYSTEM_PYTHON \
        UV_VENV_SEED UV_WORKING_DIRECTORY
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

# Copied: what is linked could be changed by a build, which may write to uv's cache.
install_with_uv() { # uv, python, environment
    "$1" venv --quiet --no-config --no-project --python "$2" "$3" &&
        "$1" pip sync --quiet --no-config --link-mode copy --require-hashes --only-binary :all: \
            ${find_links[@]+"${find_links[@]}"} --python "$3" "$lock"
} >&2

# With the pip that is there: one inside each environment takes `venv` three seconds, and nothing
# uses it. Bytecode is written by the first start, of what it imports.
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
        --require-hashes --only-binary :all: --no-deps --no-user --no-compile "$@" \
        ${find_links[@]+"${find_links[@]}"} -r "$lock"
}

# Made beside its place and renamed into it: whoever is killed leaves nothing half made there, and
# of two who start at once the second finds the first one's and drops its own.
make_environment() { # uv, python, environment
    printf 'ReleaseKit: making its environment, %s\n' "$(harmless "$3")" >&2
    mkdir -p -- "$cache"
    find "$cache" -maxdepth 1 -name 'building.*' -mmin +60 -exec rm -rf {} + || true
    building=$(mktemp -d "$cache/building.XXXXXXXX")
    trap 'rm -rf -- "$building"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
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
    if [[ -e "$3" ]] && ! has_interpreter "$3"; then
        mv -- "$3" "$building/broken"
    fi
    "$2" -I -S -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' \
        "$building/environment" "$3" 2>/dev/null || [[ -e "$3" ]] ||
        fail "the environment for ReleaseKit could not be moved to $3." 'Is the disk full?'
    rm -rf -- "$building"
    trap - EXIT INT TERM
}

# Any environment made from this very lock file will do, unless a certain Python is asked for.
# That spares starting one to see which it is, which takes a version manager's shim 0.15 s.
find_environment() {
    local candidate
    if [[ -n "${RELEASEKIT_PYTHON_PATH:-}" ]]; then
        return 1
    fi
    for candidate in "$cache/$digest"-*; do
        if has_interpreter "$candidate"; then
            return
        fi
    done
    return 1
}

find_or_make_environment() {
    local found uv version python
    found=$(find_python)
    uv=$(find_uv)
    version=${found%% *}
    python=${found#* }
    if [[ -z "$found" ]]; then
        [[ -n "$uv" ]] || fail "there is no Python $python_wanted on PATH, and no uv to fetch one." \
            'Install one, or write its path as the input python-path.'
        version=3.13
        python=$(fetch_python "$uv" "$version") ||
            fail "there is no Python $python_wanted on PATH, and uv could not fetch one." \
                'Install one, or write its path as the input python-path.'
    fi
    if ! has_interpreter "$cache/$digest-$version"; then
        make_environment "$uv" "$python" "$cache/$digest-$version"
        has_interpreter "$cache/$digest-$version"
    fi
}

here=$(own_directory)
lock=$here/requirements.lock
cache=$(cache_directory)
digest=$(lock_digest) || fail "$lock cannot be read." 'Check out the action again.'
if ! find_environment; then
    find_or_make_environment
fi
# exec: the runner signals only the process it started, and that has to be Python.
# -I and -X utf8: nothing in the caller's directory or environment may change how it starts.
exec "$interpreter" -I -u -X utf8 "$here/src/__main__.py" "$@"
