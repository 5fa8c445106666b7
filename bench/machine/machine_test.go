package machine

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	m := Of(t.Context(), map[string][]string{"a shell": {"sh", "-c", "echo shell 7.8.9"}, "nothing": {"there is no such program"}, "fails": {"sh", "-c", "echo 1.2; exit 1"}})
	if m.Cores != runtime.NumCPU() || m.Go != runtime.Version() || len(m.Programs) != 1 || m.Programs["a shell"] != "7.8.9" {
		t.Errorf("got %+v", m)
	}
	if _, err := json.Marshal(m); err != nil {
		t.Error(err)
	}
}

func TestString(t *testing.T) {
	m := Machine{Processor: "Some", Cores: 2, Kernel: "Linux 6", Go: "go1.26", Load: "0 0 0", Programs: map[string]string{"nginx": "1.22", "Caddy": "2.11"}}
	if got, want := m.String(), "Some, 2 cores, Linux 6, go1.26, Caddy 2.11, nginx 1.22"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Machine{Cores: 1, Go: "go1.26"}).String(), "1 core, go1.26"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A program in Go that does not say its version is of that of its module.
func TestVersionOfAModule(t *testing.T) {
	for is, want := range map[string]string{"v2.11.9": "2.11.9", "(devel)": "", "": ""} {
		info := new(debug.BuildInfo)
		info.Main.Version = is
		if got := moduleVersion(info); got != want {
			t.Errorf("module %q is of version %q, want %q", is, got, want)
		}
	}
	if v := builtFrom("/bin/sh"); v != "" {
		t.Errorf("a program that is not in Go is of version %q", v)
	}
}
