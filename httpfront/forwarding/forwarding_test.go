package forwarding

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

func TestIs(t *testing.T) {
	for _, name := range Names() {
		if name != strings.ToLower(name) || len(name) >= lengthMax {
			t.Errorf("%q: want lower case, and fewer than %d letters", name, lengthMax)
		}
		if strings.HasSuffix(name, "-") {
			name += "anything"
		}
		long := name + strings.Repeat("x", 100)
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(strings.ToUpper(name), "-", "_")} {
			if !Is(spelling) || !Is([]byte(spelling)) {
				t.Errorf("%s is none", spelling)
			}
		}
		if begins := strings.HasSuffix(name, "anything"); Is(long) != begins {
			t.Errorf("%s is one: %v", long, !begins)
		}
	}
	for _, name := range []string{
		"", "-", "_", "Host", "User-Agent", "Accept", "Cookie", "Origin", "X", "X-", "X-Custom", "X-Forward", "Ropeline", "X-Ropeline-State",
		"Cf-Ipcountry", "X-Original", "X-Requested-With", "Client-Ips", "XClient-Ip", "Proxy-Authorization", strings.Repeat("x", 31), strings.Repeat("x", 32),
	} {
		if Is(name) {
			t.Errorf("%q is one", name)
		}
	}
}

func TestNamesAreInOrder(t *testing.T) {
	if !slices.IsSorted(Names()) || len(slices.Compact(Names())) != len(names) {
		t.Errorf("%q", Names())
	}
}

// TestTheDocsAndTheExamplesHaveThem: there is one list.
func TestTheDocsAndTheExamplesHaveThem(t *testing.T) {
	text := must.Do(os.ReadFile("../../docs/security.md"))
	_, section, _ := strings.Cut(string(text), "## Fields that visitors may not set\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range Names() {
		want := "`" + name + "`"
		if strings.HasSuffix(name, "-") {
			want = "`" + name + "*`"
		}
		if !strings.Contains(strings.ToLower(section), want) {
			t.Errorf("docs/security.md does not list %s among fields that visitors may not set", want)
		}
	}
	// What each proxy leaves out by itself, or writes.
	own := map[string][]string{
		"nginx.conf": nil, "envoy.yaml": nil, "envoy-http.yaml": nil,
		"haproxy.cfg": nil, "Caddyfile": {"x-forwarded-"}, "traefik.yml": {"x-real-ip", "x-forwarded-"},
	}
	for example, leaves := range own {
		text := must.Do(os.ReadFile(filepath.Join("../../docs/examples", example)))
		has := strings.ReplaceAll(strings.ToLower(string(text)), "[-_]", "-")
		for _, name := range Names() {
			if name != "ropeline-" && !slices.Contains(leaves, name) && !strings.Contains(has, name) {
				t.Errorf("docs/examples/%s does not speak of %s", example, name)
			}
		}
	}
}
