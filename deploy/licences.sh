#!/usr/bin/env bash
# Prints the licences of Go and of each module in the binary, for GOOS and GOARCH. A module
# without one is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "The binary contains the Go runtime and library, and the modules below, under these licences."
printf '\n==== Go %s\n\n' "$(go env GOVERSION)"
cat "$(go env GOROOT)/LICENSE"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/ropeline | sort -u |
  while read -r module version dir; do
    printf '\n==== %s %s\n\n' "$module" "$version"
    find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort | grep . | xargs cat ||
      { echo "licences: $module has none in $dir" >&2; exit 1; }
  done
