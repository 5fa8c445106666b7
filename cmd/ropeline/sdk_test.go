package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var allSDKs = flag.Bool("all-sdks", false, "run the SDK that takes minutes to build as well, which make sdk-check does")

// TestPublishedSDKsAgainstAMesh has the SDKs of the dialect do all that they know of rooms
// with three nodes in two sites, each call to another one. They are in a module of their own;
// that of npm is left out until make sdk-check has installed it.
func TestPublishedSDKsAgainstAMesh(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	const token = "0123456789abcdefghijABCDEFGHIJ0123456789"
	nodes := serveMesh(t, startOrigin(t), []string{"a", "a", "b"}, "--host", "elsewhere.example")
	var urls []string
	for _, p := range nodes {
		urls = append(urls, "http://"+p.admin)
	}
	dir, err := filepath.Abs("../../httpfront/operator/admin/sdk")
	if err != nil {
		t.Fatal(err)
	}
	tags := "grpcnotrace" // as all else is that is built without the race detector: what the SDKs' tests need of it is compiled once
	if !*allSDKs {
		tags += ",nov7"
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", tags, "-vet=off", "-count=1", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "ROPELINE_SDK_URLS="+strings.Join(urls, ","), "ROPELINE_SDK_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
