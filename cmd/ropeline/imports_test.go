package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ropeline/ropeline/"

// allowed says which of our packages a package may import; a trailing "/" means
// everything below. Arrows point one way, from what meets the world to what is
// pure.
var allowed = map[string][]string{
	"crdt":      {"node/packed"},
	"transport": {"transport/internal/"},

	"transport/internal/skew": {},
	"transport/memnet":        {"transport", "transport/internal/"},
	"node/history":            {"crdt"},
	"node/limit":              {"crdt", "node/room", "node/settings"},
	"node/nearest":            {},
	"node/settings":           {"node/nearest"},
	"node/room":               {"crdt", "node/packed", "node/settings"},
	"node/catalog":            {"crdt", "node/limit", "node/room"},
	"node/replica":            {"crdt"},
	"node/packed":             {},
	"node/ticket":             {"crdt", "node/packed"},
	"node/bootstrap":          {"crdt"},
	"node/durable":            {},
	"node/durable/faultstore": {"node/durable"},
	"node":                    {"crdt", "node/bootstrap", "node/catalog", "node/durable", "node/history", "node/limit", "node/packed", "node/room", "node/replica", "node/ticket", "transport"},
	"httpfront":               {"crdt", "node", "node/catalog", "node/limit", "node/room", "node/ticket", "httpfront/"},
	"httpfront/accesslog":     {},
	"httpfront/adminserver":   {"httpfront/admin"},
	"httpfront/admin":         {"crdt", "node/catalog", "node/limit", "node/nearest", "node/room", "node/settings", "httpfront/lang"},
	"httpfront/acme":          {"httpfront/certs"},
	"httpfront/certs":         {},
	"httpfront/crawler":       {},
	"httpfront/deadline":      {},
	"httpfront/tracing":       {},
	"httpfront/browsertest":   {},
	"httpfront/dashboard":     {},
	"httpfront/expr":          {},
	"httpfront/forwarding":    {},
	"httpfront/lang":          {},
	"httpfront/metrics":       {"crdt"},
	"httpfront/overview":      {"crdt", "node", "node/catalog", "node/history", "node/room", "httpfront/dashboard", "transport"},
	"httpfront/manage":        {"crdt", "node", "node/history", "httpfront", "httpfront/admin", "httpfront/dashboard"},
	"httpfront/page":          {"node", "node/nearest", "node/room", "httpfront/lang"},
	"httpfront/page/pagetest": {"crdt", "node", "node/room"},
	"httpfront/pass":          {"crdt", "node", "node/room", "node/ticket"},
	"httpfront/server":        {"crdt", "node", "node/bootstrap", "node/catalog", "node/durable", "node/history", "node/limit", "node/room", "node/settings", "transport", "httpfront", "httpfront/"},
	"httpfront/socket":        {},
	"httpfront/upstream":      {"httpfront/deadline", "httpfront/socket"},
	"httpfront/profiles":      {},
	"httpfront/verdict":       {"httpfront"},

	"httpfront/admin/admintest":          {"crdt", "node/catalog", "node/limit", "node/room", "httpfront/admin"},
	"httpfront/middleware":               {"httpfront/forwarding", "httpfront/middleware/internal/site"},
	"httpfront/middleware/fast":          {"httpfront/forwarding", "httpfront/middleware", "httpfront/middleware/internal/site"},
	"httpfront/middleware/internal/site": {},

	"httpfront/proof":       {},
	"httpfront/proof/check": {},
	"bench/accesslog":       {},
	"bench/load":            {"bench/accesslog", "bench/order"},
	"bench/rate":            {"bench/measurement", "bench/rate/internal/poll", "bench/rig"},
	"bench/rate/bare":       {"bench/rate/internal/poll"},
	"bench/sim":             {"crdt", "node", "node/durable", "node/room", "node/replica", "node/ticket", "bench/order"},
	"bench/order":           {},
	"bench/sim/input":       {"bench/accesslog"},
	"bench/sim/plot":        {"bench/sim"},
	"bench/footprint":       {"crdt", "node", "node/catalog", "node/history", "node/room", "node/ticket", "bench/load", "bench/measurement", "bench/rig", "bench/virtual"},
	"bench/heavy":           {"bench/load", "bench/measurement", "bench/rig"},
	"bench/limits":          {"crdt", "node/limit"},
	"bench/limits/hurt":     {"bench/measurement", "bench/rig", "bench/rig/", "node"},
	"bench/tiers":           {},
	"bench/tiers/single":    {},
	"bench/live":            {"crdt", "node", "node/room", "transport", "bench/rig"},
	"bench/tickets":         {"crdt", "node", "node/room", "bench/live", "bench/measurement", "bench/rig", "bench/rig/redis"},
	"bench/scaling":         {"bench/measurement", "bench/rig", "transport"},
	"bench/virtual":         {"crdt", "node", "node/replica"},
	"bench/traffic":         {"bench/live", "bench/measurement", "bench/rig", "bench/virtual", "crdt", "node", "node/replica", "node/room"},
	"bench/rig/built":       {"bench/rig"},
	"bench/rig/redis":       {"bench/rig"},
	"bench/rig/serve":       {"bench/rate/bare"},
	"bench/measurement":     {"bench/rig"},
	"bench/suite":           {"bench/load", "bench/measurement", "bench/rig", "bench/rig/", "bench/rate"},
	"bench/accuracy":        {"bench/accesslog", "bench/measurement", "bench/limits", "node/limit"},
	"bench/schedules":       {"bench/sim", "node/room", "node/ticket"},
	"bench/explore":         {"bench/explore/", "node/ticket"},
	"bench/explore/breadth": {},
	"bench/explore/boot":    {"bench/explore/breadth", "crdt", "node/bootstrap"},
	"bench/explore/replay":  {"crdt", "node", "node/catalog", "node/durable", "node/replica", "node/room", "node/ticket"},
	"bench/explore/small":   {"bench/explore/breadth", "crdt", "node", "node/ticket"},
	"bench/story":           {"bench/measurement", "bench/sim"},
	"bench/sweep":           {"bench/measurement", "bench/sim", "bench/sim/input", "node/room"},
	"bench/conformance":     {"bench/measurement", "bench/rig", "httpfront/forwarding", "httpfront/proof/check"},

	"bench/rate/internal/poll": {"bench/rig"},

	"bench/faults":        {"crdt", "node", "bench/measurement", "bench/load", "bench/faults/", "bench/rig", "bench/rig/"},
	"bench/faults/check":  {"bench/faults/record"},
	"bench/faults/record": {},
	"bench/rig":           {"node", "transport", "bench/faults/record", "bench/rig/udp"},
	"bench/rig/udp":       {},

	"cmd/cli":              {"node/nearest"},
	"cmd/ropeline/operate": {"cmd/cli", "httpfront/certs", "node/nearest"},
	"cmd/ropeline-bench":   {"cmd/cli", "node/room", "node/settings", "bench/"},
	"cmd/ropeline":         {"cmd/cli", "cmd/ropeline/operate", "crdt", "node", "node/catalog", "node/durable", "node/limit", "node/nearest", "node/room", "node/settings", "transport", "httpfront", "httpfront/", "bench/load", "bench/rig", "bench/faults/record"},
}

// impure lists what the pure packages may not touch: network, files, clocks of
// their own, goroutines to guard.
var (
	pure   = []string{"crdt", "node/catalog", "node/history", "node/limit", "node/nearest", "node/packed", "node/replica", "node/room", "node/settings", "node/ticket"}
	impure = []string{"net", "net/http", "os", "os/exec", "sync", "sync/atomic", "syscall", "log", "log/slog", "context"}
)

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range ourPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s has no rule here; say what it may import", name)
		}
		for _, imp := range p.Imports {
			other, ours := strings.CutPrefix(imp, module)
			if ours && !permits(may, other) {
				t.Errorf("%s imports %s; it may import %v of ours", name, other, may)
			}
		}
	}
}

func TestImportsOfPureCoreArePure(t *testing.T) {
	seen := 0
	for _, p := range ourPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(pure, name) {
			continue
		}
		seen++
		for _, imp := range p.Imports {
			if slices.Contains(impure, imp) {
				t.Errorf("%s imports %s: the core is given its input and the time, and touches nothing else", name, imp)
			}
		}
	}
	if seen != len(pure) {
		t.Errorf("%d of the %d pure packages were found", seen, len(pure))
	}
}

// TestImportsOfFasthttpStayInFront holds the line below which nothing may keep
// memory that fasthttp uses again.
func TestImportsOfFasthttpStayInFront(t *testing.T) {
	may := []string{"httpfront", "httpfront/adminserver", "httpfront/dashboard", "httpfront/middleware/fast"}
	for _, p := range ourPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if slices.Contains(p.Imports, "github.com/valyala/fasthttp") && !slices.Contains(may, name) && !strings.HasPrefix(name, "bench/") {
			t.Errorf("%s imports fasthttp; only %v may", name, may)
		}
	}
}

// TestImportsOfTheProgramAreOfTheProduct holds what is linked into ropeline to what a site needs: it
// draws nothing and calculates no statistics, and of bench it has the crowds of load and demo, and the
// processes of demo. Everything else is for ropeline-bench.
func TestImportsOfTheProgramAreOfTheProduct(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/ropeline").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, module+"httpfront") {
		t.Fatalf("of the packages of ropeline, httpfront is not among these: %v", linked)
	}
	for _, name := range linked {
		if why := foreign(name); why != "" {
			t.Errorf("%s is linked into ropeline: %s", name, why)
		}
	}
	for _, name := range []string{"gonum.org/v1/plot/vg", "codeberg.org/go-fonts/liberation/liberationsansbold", "codeberg.org/go-latex/latex/tex",
		"codeberg.org/go-pdf/fpdf", "golang.org/x/image/font", "image/png", "github.com/google/pprof/profile", "golang.org/x/perf/benchfmt", module + "bench/sim"} {
		if foreign(name) == "" {
			t.Errorf("%s might be linked into ropeline", name)
		}
	}
}

// foreign says why a package is not for a product; "": it may be.
func foreign(name string) string {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '.' || r == '-' }) {
		if slices.Contains([]string{"gonum", "image", "font", "fonts", "freetype", "latex", "pdf", "fpdf", "svgo", "perf", "moremath", "benchmath"}, part) {
			return "it draws, sets type or judges measurements"
		}
	}
	if name != "runtime/pprof" && name != "net/http/pprof" && strings.HasSuffix(strings.TrimSuffix(name, "/profile"), "pprof") {
		return "it writes profiles, where the runtime's own are all that --profiles shows"
	}
	of, ours := strings.CutPrefix(name, module)
	if ours && strings.HasPrefix(of, "bench/") && !slices.Contains([]string{"bench/accesslog", "bench/load", "bench/order", "bench/rig", "bench/rig/udp", "bench/faults/record"}, of) {
		return "it measures"
	}
	return ""
}

func permits(may []string, other string) bool {
	return slices.ContainsFunc(may, func(rule string) bool {
		return other == rule || strings.HasSuffix(rule, "/") && strings.HasPrefix(other, rule)
	})
}

func ourPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found none of our packages")
	}
	return all
}
