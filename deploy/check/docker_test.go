package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"sigs.k8s.io/yaml"
)

// stages reads the Dockerfile as BuildKit does; what BuildKit's linter warns of is an error.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	f, err := os.Open("../docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	warn := func(rule, description, _, message string, at []parser.Range) {
		t.Errorf("Dockerfile %v: %s: %s (%s)", at, rule, message, description)
	}
	all, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDockerfile: the image begins with nothing, runs as nobody in particular, and takes
// what an earlier stage has.
func TestDockerfile(t *testing.T) {
	all := stages(t)
	last := all[len(all)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image begins with %s", last.BaseName)
	}
	var user string
	var entry, command, env []string
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			entry = c.CmdLine
			if c.PrependShell {
				t.Error("there is no shell to start the binary with")
			}
		case *instructions.CmdCommand:
			command = c.CmdLine
		case *instructions.EnvCommand:
			for _, pair := range c.Env {
				env = append(env, pair.String())
			}
		case *instructions.RunCommand:
			t.Errorf("%s: there is nothing to run it with", c)
		case *instructions.CopyCommand:
			if c.From != all[0].Name {
				t.Errorf("%s is not from the stage %q", c, all[0].Name)
			}
		}
	}
	if uid, _, _ := strings.Cut(user, ":"); uid != "65532" {
		t.Errorf("the image runs as %q; clusters that refuse root want a number", user)
	}
	if !slices.Equal(entry, []string{"/ropeline"}) || !slices.Equal(command, []string{"run"}) || !slices.Equal(env, []string{"STATE_DIRECTORY=/data", "GODEBUG=gcshrinkstackoff=1"}) {
		t.Errorf("the image runs %q %q with %q", entry, command, env)
	}
}

// TestDockerContextHasWhatIsBuilt: what the build reads is not left out of its context.
func TestDockerContextHasWhatIsBuilt(t *testing.T) {
	f, err := os.Open("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	left, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"go.mod": false, "go.sum": false, "LICENSE": false, "cmd/ropeline/main.go": false, "deploy/licences.sh": false,
		"ropeline": true, "dist/SHA256SUMS": true, ".git/HEAD": true, "deploy/docker/secret.key": true,
	} {
		got, err := left.MatchesOrParentMatches(path)
		if err != nil || got != want {
			t.Errorf("%s is left out: %v, %v, want %v", path, got, err, want)
		}
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil && !want {
			t.Error(err)
		}
	}
}

// composed reads the file as docker compose does.
func composed(t *testing.T, env types.Mapping) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs("../docker")
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: dir, Environment: env,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}},
	})
}

func TestComposeWantsAnOrigin(t *testing.T) {
	if _, err := composed(t, nil); err == nil || !strings.Contains(err.Error(), "the site to protect") {
		t.Errorf("without ORIGIN: %v", err)
	}
}

// TestCompose starts each node as the file says, one at a time.
func TestCompose(t *testing.T) {
	project, err := composed(t, types.Mapping{"ORIGIN": "http://192.0.2.10:3000"})
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 3 {
		t.Errorf("%d nodes", len(project.Services))
	}
	secret, data, ports := newSecret(t), map[string]bool{}, map[string]bool{}
	var named struct {
		Bootstrap []string `json:"bootstrap-nodes"`
	}
	if err := yaml.Unmarshal([]byte(project.Configs["node"].Content), &named); err != nil {
		t.Fatal(err)
	}
	bootstrap := named.Bootstrap
	for name, s := range project.Services {
		if s.Hostname != name || !s.ReadOnly || s.Image != "ropeline" {
			t.Errorf("%s: host %q, read-only %v, image %q", name, s.Hostname, s.ReadOnly, s.Image)
		}
		for _, v := range s.Volumes {
			if v.Target == "/data" {
				data[v.Source] = true
			}
		}
		for _, p := range s.Ports {
			ports[p.Published] = true
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Error(err)
		}
		// A container has its host's name, which is the node's: here it has to be said.
		c := container{args: append(slices.Clone(s.Command), "--name", s.Hostname), files: map[string]string{}}
		for _, at := range s.Configs {
			c.files[at.Target] = project.Configs[at.Source].Content
		}
		for _, at := range s.Secrets {
			c.files["/run/secrets/"+at.Source] = secret
		}
		if !slices.Contains(bootstrap, s.Hostname) {
			t.Errorf("%s is none of those that bootstrap the mesh, %q", name, bootstrap)
		}
		c.args = append(c.args, "--bootstrap-nodes", s.Hostname) // alone, so that it need not wait for the others
		c.run(t, "/readyz")
		wantProbe(t, s.HealthCheck.Test[1:])
	}
	if len(data) != 3 || len(ports) != 3 {
		t.Errorf("three nodes have %d data directories and %d ports", len(data), len(ports))
	}
}

// wantProbe holds that a health check is a command that the binary has: where no node runs
// it says that nobody answers, which is code 3, and not that it is misunderstood.
func wantProbe(t *testing.T, command []string) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if len(command) < 2 || command[0] != "/ropeline" {
		t.Errorf("the check %q is not by /ropeline, which is all that the image has", command)
		return
	}
	code := exitCode(t, bin, append(slices.Clone(command[1:]), "--server", freeAddress(t, "tcp")))
	if code != 3 {
		t.Errorf("the check %q ends with %d", command, code)
	}
}
