package check

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// commands returns the shell commands in docs/installing.md by the word that each block has
// behind ```sh, those of one word one after the other.
func commands(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/installing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, kind := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		word, opens := strings.CutPrefix(line, "```sh")
		switch {
		case opens:
			if kind = strings.TrimSpace(word); kind == "" {
				t.Error("a block of commands does not say what it is about")
			}
		case strings.HasPrefix(line, "```"):
			kind = ""
		case kind != "":
			blocks[kind] += line
		}
	}
	want := []string{"archive", "compose", "image", "kubernetes", "leave", "package", "remove", "rpm", "secret", "sysctl", "upgrade"}
	if got := slices.Sorted(maps.Keys(blocks)); !slices.Equal(got, want) {
		t.Fatalf("the page has commands of %v, want %v, which the tests know", got, want)
	}
	return blocks
}

// installingPage returns what the page says to a machine, with what is to be so after it.
func installingPage(t *testing.T) []string {
	t.Helper()
	do := commands(t)
	for kind, text := range do {
		do[kind] = strings.ReplaceAll(text, "_amd64", "_"+runtime.GOARCH)
	}
	upgrade, back, found := strings.Cut(do["upgrade"], "sudo dpkg --install ropeline_1.2.3")
	if !found {
		t.Fatal("the page does not go back")
	}
	lines := []string{
		do["archive"], `is "$(ropeline version | cut -d' ' -f2)" 1.2.3`, "rm /usr/local/bin/ropeline", "hash -r",
		do["sysctl"], `is "$(cat /etc/sysctl.d/10-ropeline.conf)" "$(grep -v '^#' ropeline_1.2.3_*/package/sysctl.conf)"`,
		do["package"], "is \"$(version)\" 1.2.3", "grep -q '^origin: http://127.0.0.1:3000$' /etc/ropeline/ropeline.yaml",
		do["secret"], `is "$(stat -c %U:%a /var/lib/ropeline/secret.key)" ropeline:600`,
		upgrade, `is "$(version)" 1.3.0`,
		"sudo dpkg --install ropeline_1.2.3" + back, `is "$(version)" 1.2.3`,
		"kill $(cat /run/node)", "while kill -0 $(cat /run/node) 2>/dev/null; do sleep 0.05; done", // as systemd does
		do["remove"], "[ ! -e /usr/bin/ropeline ] && [ ! -e /var/lib/ropeline ] && [ -e /etc/ropeline/ropeline.yaml ]",
	}
	if runtime.GOARCH == "amd64" {
		lines = append(lines, "if [ -x /usr/bin/rpm ]; then", do["rpm"], `is "$(ropeline version | cut -d' ' -f2)" 1.2.3`,
			`is "$(stat -c %U:%a /var/lib/ropeline)" ropeline:700`, "rpm --erase ropeline", "[ ! -e /usr/bin/ropeline ]", "fi")
	}
	return lines
}

// recorded runs commands of the page in a copy of what they name, with programs that note what
// they are told in the place of those that need a cluster, and returns that.
func recorded(t *testing.T, script string) (calls [][]string) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, path, notes := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "notes")
	for _, name := range []string{"docker", "kubectl", "helm", "sudo"} {
		stub := "#!/bin/sh\n{ printf '" + name + "'; printf '\\037%s' \"$@\"; echo; } >>'" + notes + "'\n"
		if err := os.WriteFile(filepath.Join(path, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bin, filepath.Join(path, "ropeline")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\nsays\n%s", err, script, out)
	}
	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		calls = append(calls, strings.Split(strings.TrimSuffix(line, "\n"), "\x1f"))
	}
	return calls
}

// after returns what follows a word in a call; nil if it is not there.
func after(call []string, word string) []string {
	if i := slices.Index(call, word); i >= 0 {
		return call[i+1:]
	}
	return nil
}

// TestPageOnContainers: what is said to run in a container is a command of the binary, and
// what is built is there.
func TestPageOnContainers(t *testing.T) {
	wantProbe(t, append([]string{"/ropeline"}, strings.Fields(commands(t)["leave"])[1:]...))
	inside := 0
	for kind, script := range commands(t) {
		if kind != "image" && kind != "compose" && kind != "kubernetes" {
			continue
		}
		for _, call := range recorded(t, script) {
			if file := after(call, "--file"); file != nil {
				if _, err := os.Stat(filepath.Join("../..", file[0])); err != nil {
					t.Error(err)
				}
			}
			if command := after(call, "/ropeline"); command != nil {
				inside++
				wantProbe(t, append([]string{"/ropeline"}, command...))
			}
			if call[1] == "run" && call[len(call)-1] != "keygen" {
				startAsMesh(t, after(after(call, "--stop-timeout"), "ropeline"))
			}
		}
	}
	if inside < 5 {
		t.Errorf("only %d commands in containers were found", inside)
	}
}

// startAsMesh runs a node as told; the tests give each one a port for others, which wants a
// secret.
func startAsMesh(t *testing.T, args []string) {
	t.Helper()
	const secret = "/run/secrets/secret.key"
	container{args: append(slices.Clone(args), "--name", "a", "--bootstrap-nodes", "a", "--secret-file", secret), files: map[string]string{secret: newSecret(t)}}.run(t, "/readyz")
}

// TestPageOnHelm renders the chart with what the page sets, one command after the other.
func TestPageOnHelm(t *testing.T) {
	values := map[string]any{}
	var replicas []int32
	for _, call := range recorded(t, commands(t)["kubernetes"]) {
		if call[0] != "helm" {
			continue
		}
		if call[1] == "upgrade" && !slices.Contains(call, "--reuse-values") {
			t.Errorf("%q forgets what was set before", call)
		}
		if call[3] != "deploy/helm/ropeline" {
			t.Errorf("%q: the chart is elsewhere", call)
		}
		for rest := after(call, "--set"); rest != nil; rest = after(rest, "--set") {
			if err := strvals.ParseInto(rest[0], values); err != nil {
				t.Fatalf("%q: %v", call, err)
			}
		}
		r, err := render(t, loader.MergeMaps(nil, values))
		if err != nil {
			t.Fatalf("%q: %v", call, err)
		}
		replicas = append(replicas, *r.set.Spec.Replicas)
	}
	if want := []int32{3, 5, 5, 3, 3}; !slices.Equal(replicas, want) {
		t.Errorf("the page comes to %v nodes, want %v", replicas, want)
	}
	if values["onStop"] != "keep" || values["updatePartition"] != int64(0) {
		t.Errorf("in the end there is %v", values)
	}
}
