package forwarding

import (
	"os"
	"path/filepath"
	"regexp"
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
		"nginx.conf": nil, "envoy.yaml": nil, "envoy-http.yaml": nil, "haproxy.cfg": nil, "Caddyfile": nil,
		"traefik.yml": {"x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-server"},
	}
	listed := regexp.MustCompile("x-[a-z-]+[a-z]`").FindAllString(strings.ToLower(section), -1)
	for example, leaves := range own {
		text := must.Do(os.ReadFile(filepath.Join("../../docs/examples", example)))
		plain := strings.NewReplacer("[^a-z0-9]", "-", ".*", "*").Replace(strings.ToLower(string(text)))
		has := append(regexp.MustCompile(`[a-z][a-z0-9-]*\*?`).FindAllString(plain, -1), leaves...)
		begins := slices.Contains(has, "x-forwarded-*")
		var want []string
		for _, name := range Names() {
			switch {
			case !strings.HasSuffix(name, "-"):
				want = append(want, name)
			case name != "ropeline-" && begins:
				want = append(want, name+"*")
			}
		}
		if !begins { // then each of those that the page lists
			want = append(want, listed...)
		}
		for _, name := range want {
			if name = strings.Trim(name, "`"); !slices.Contains(has, name) {
				t.Errorf("docs/examples/%s does not name %s", example, name)
			}
		}
	}
}
