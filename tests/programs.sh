#!/usr/bin/env bash
# What the tests need that no lock file names: databases' servers, a browser, promtool. Installs what is missing, as root
# on Debian and its relatives; elsewhere it tells what is, and fails.
set -euo pipefail

OLDEST_JAVA=17

has_java() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java version
  command -v "$java" >/dev/null || return 1
  version=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
  [ "${version:-0}" -ge "$OLDEST_JAVA" ]
}

# Debian keeps the server's programs off PATH.
has_postgres() { command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }

# Neither is MariaDB's on the PATH of every user.
has_mariadb() { PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec command -v mariadbd >/dev/null; }

# The page is tested in a real browser; Ubuntu has it as a snap, so that elsewhere Chrome and its driver do too.
has_browser() {
  command -v chromedriver >/dev/null &&
    { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
}

# promtool checks the alert rules.
has_promtool() { command -v promtool >/dev/null; }

# Debian's Python comes without what makes virtual environments.
has_venv() { python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

first_known() {
  local package
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      echo "$package"
      return
    fi
  done
  echo "None of these packages is known here: $*" >&2
  return 1
}

missing=()
command -v make >/dev/null || missing+=(make)
has_venv || missing+=("python3 python3-venv")
has_java || missing+=("openjdk-17-jre-headless|openjdk-21-jre-headless")
has_postgres || missing+=("postgresql-15|postgresql")
has_mariadb || missing+=("mariadb-server")
has_browser || missing+=("chromium chromium-driver")
has_promtool || missing+=("prometheus")

if [ "${#missing[@]}" -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Missing: ${missing[*]}. Tests that need them fail. Install them, or run this as root on Debian or Ubuntu." >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  failed=()
  for choice in "${missing[@]}"; do
    IFS='|' read -ra names <<<"$choice"
    if [ "${#names[@]}" -gt 1 ]; then
      names=("$(first_known "${names[@]}")") || { failed+=("$choice"); continue; }
    else
      read -ra names <<<"$choice"
    fi
    # Each by itself: of several packages apt installs none where it does not know one.
    apt-get install --yes -qq --no-install-recommends "${names[@]}" || failed+=("$choice")
  done
  if [ "${#failed[@]}" -gt 0 ]; then
    echo "Not installed: ${failed[*]}. Tests that need them fail." >&2
    exit 1
  fi
fi
