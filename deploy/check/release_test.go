package check

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// release builds a version for Linux on this machine's processor, and returns the sums.
func release(t *testing.T, version, dist, umask string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "umask "+umask+" && exec ../release.sh "+version)
	cmd.Env = append(os.Environ(), "TARGETS=linux/"+runtime.GOARCH, "DIST="+dist)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if _, err := cmd.Output(); err != nil {
		t.Fatalf("release %s: %v\n%s", version, err, &stderr)
	}
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(sums)
}

// TestRelease builds one release twice, which are to be the same bytes, and a later one, and
// has them installed.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are built with GNU tar, which Linux has")
	}
	first, again, later, both := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	sums := release(t, "1.2.3", first, "022")
	if other := release(t, "v1.2.3", again, "077"); other != sums {
		t.Errorf("two builds of one commit differ:\n%s\n%s", sums, other)
	}
	release(t, "1.3.0", later, "022")
	if err := os.Remove(filepath.Join(later, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	for _, dist := range []string{first, later} {
		if err := os.CopyFS(both, os.DirFS(dist)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(sums, "\n"); n != 4 {
		t.Errorf("%d files have a sum, want an archive, two packages and a chart:\n%s", n, sums)
	}
	t.Run("chart", func(t *testing.T) { checkChartArchive(t, only(t, first, "*.tgz")) })
	t.Run("archive", func(t *testing.T) { checkArchive(t, first) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, only(t, first, "*.rpm")) })
	t.Run("deb", func(t *testing.T) { onCopy(t, both, "testdata/install.sh", nil) })
	t.Run("page", func(t *testing.T) { onCopy(t, both, "testdata/page.sh", installingPage(t)) })
}

func TestReleaseRefusesOtherVersions(t *testing.T) {
	for _, version := range []string{"", "1.2", "latest", "1.2.3 4", "../1.2.3"} {
		dist := filepath.Join(t.TempDir(), "dist")
		cmd := exec.CommandContext(t.Context(), "../release.sh", version)
		cmd.Env = append(os.Environ(), "DIST="+dist)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "allowed: three numbers") {
			t.Errorf("version %q: %v, %s", version, err, out)
		}
		if _, err := os.Stat(dist); err == nil {
			t.Errorf("version %q was refused after something was written", version)
		}
	}
}

// only returns the one file of a folder that matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: %v, %v", pattern, dir, found, err)
	}
	return found[0]
}

// tool returns what a program prints; where there is no such program the test is skipped.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("there is no %s here", name)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

func checkArchive(t *testing.T, dist string) {
	archive, dir := only(t, dist, "*.tar.gz"), t.TempDir()
	tool(t, "tar", "-xzf", archive, "-C", dir)
	root := filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
	for _, name := range []string{
		"ropeline", "LICENSE", "THIRD-PARTY-LICENSES", "README.md", "CHANGELOG.md", "docs/configuration.md",
		"completion/ropeline.bash", "package/ropeline.service", "package/ropeline.yaml", "deploy/alerts/ropeline.rules.yaml", "deploy/grafana/ropeline.json",
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "ropeline")); err == nil && info.Size() > 40e6 {
		t.Errorf("the program has %d bytes, want at most 40 MB: what it does not need is for ropeline-bench", info.Size())
	}
	if got := tool(t, filepath.Join(root, "ropeline"), "version"); !strings.HasPrefix(got, "ropeline 1.2.3 ") {
		t.Errorf("it says %q", got)
	}
	licences, err := os.ReadFile(filepath.Join(root, "THIRD-PARTY-LICENSES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"==== Go go1.", "==== go.etcd.io/bbolt v", "==== github.com/quic-go/quic-go v"} {
		if !strings.Contains(string(licences), of) {
			t.Errorf("no licence of %q", of)
		}
	}
}

// onCopy runs a script, and lines after it, on a copy of this machine, where one can be
// made: as root, on Debian. It is given the releases in dist.
func onCopy(t *testing.T, dist, script string, lines []string) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a copy of this machine")
	}
	tool(t, "dpkg", "--version")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "testdata/copy.sh", dist, t.TempDir())
	cmd.Stdin = strings.NewReader(string(text) + strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 77 || errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no copy of this machine can be made: %s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkRPM(t *testing.T, path string) {
	files := strings.Fields(tool(t, "rpm", "-qlp", path))
	for _, name := range []string{"/usr/bin/ropeline", "/etc/ropeline/ropeline.yaml", "/usr/lib/systemd/system/ropeline.service", "/usr/lib/sysusers.d/ropeline.conf"} {
		if !slices.Contains(files, name) {
			t.Errorf("%s is missing", name)
		}
	}
	if got := strings.TrimSpace(tool(t, "rpm", "-qp", "--configfiles", path)); got != "/etc/ropeline/ropeline.yaml" {
		t.Errorf("files that upgrades keep: %q", got)
	}
	scripts := tool(t, "rpm", "-qp", "--scripts", path)
	for _, name := range []string{"postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet", "systemd-sysusers ropeline.conf"} {
		if !strings.Contains(scripts, name) {
			t.Errorf("no %s", name)
		}
	}
}
