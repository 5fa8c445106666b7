#!/usr/bin/env bash
# Writes archives, Debian and RPM packages and the chart of a version, and their sums, into dist/.
# Given the same commit and the same Go, the bytes are the same: all times are the commit's.
#   TARGETS  what to build for, "linux/amd64 darwin/arm64"; all by default
#   DIST     where to write, dist by default; an earlier release there is deleted
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
version=${1-}
version=${version#v}
if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "release: VERSION is \"$version\"; allowed: three numbers, perhaps with a suffix, such as 1.2.3 or 1.3.0-rc.1" >&2
  exit 2
fi
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
mkdir -p "${DIST:=dist}"
dist=$(cd "$DIST" && pwd)
build=$dist/build

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH VERSION=$version CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 LC_ALL=C TZ=UTC
umask 022
rm -rf "$build" "$dist"/ropeline[-_]* "$dist/SHA256SUMS"
mkdir -p "$build/completion"

# What the builder's own machine runs. It stays: the next release links it again only if it has changed.
tools=$root/artifacts/release
mkdir -p "$tools"
GOOS='' GOARCH='' go build -C deploy/check -o "$tools/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
GOOS='' GOARCH='' go build -trimpath -buildvcs=false -tags grpcnotrace -o "$tools/ropeline" ./cmd/ropeline
"$tools/ropeline" completion bash >"$build/completion/ropeline.bash"
"$tools/ropeline" completion zsh >"$build/completion/_ropeline"
"$tools/ropeline" completion fish >"$build/completion/ropeline.fish"

# pack DIR writes a folder of build as an archive on standard output.
pack() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --exclude=package/nfpm.yaml \
    --exclude='package/*.sh' -C "$build" -cf - "$1" | gzip -n9
}

cp -r deploy/helm "$build/chart"
sed -i -E "s/^(version|appVersion): .*/\1: $version/" "$build/chart/ropeline/Chart.yaml"
chmod -R u=rwX,go=rX "$build/chart"
build=$build/chart pack ropeline >"$dist/ropeline-chart-$version.tgz"

for target in $targets; do
  os=${target%/*} arch=${target#*/}
  name=ropeline_${version}_${os}_$arch
  stage=$build/$name
  mkdir -p "$stage/deploy"
  export GOOS=$os GOARCH=$arch
  # Without pages of traces of gRPC calls, which nobody is shown: the templates for them are 120 KB.
  go build -trimpath -buildvcs=false -tags grpcnotrace -ldflags "-s -w -X main.version=$version" -o "$stage/ropeline" ./cmd/ropeline
  deploy/licences.sh >"$stage/THIRD-PARTY-LICENSES"
  cp -r LICENSE README.md CHANGELOG.md docs "$build/completion" "$stage"
  cp -r deploy/alerts deploy/grafana "$stage/deploy"
  [ "$os" != linux ] || cp -r deploy/package "$stage"
  chmod -R u=rwX,go=rX "$stage"
  pack "$name" >"$dist/$name.tar.gz"
  if [ "$os" = linux ]; then
    for kind in deb rpm; do
      (cd "$stage" && ARCH=$arch "$tools/nfpm" package --config "$root/deploy/package/nfpm.yaml" --packager $kind --target "$dist" >"$build/log" 2>&1) ||
        { cat "$build/log" >&2; exit 1; }
    done
  fi
done
rm -rf "$build"
cd "$dist"
sha256sum -- ropeline* >SHA256SUMS
cat SHA256SUMS
