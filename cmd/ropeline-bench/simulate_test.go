package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/room"
)

// short is a run that is over in a moment and in which people wait.
var short = strings.Fields("--arrivals uniform:120/2m --sites 2 --nodes 2 --total-active-users 20 --new-users-per-minute 60 --session-duration 20s --stay 20s --bucket-span 10s --refresh-interval 5s")

func shortAnd(more ...string) []string { return append(append([]string{}, short...), more...) }

// runSimulateCommand runs the command with args and returns what it printed.
func runSimulateCommand(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	single.Goroutine(t)
	cmd := newRootCommand()
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"simulate"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestSimulatePrintsOneObject(t *testing.T) {
	out, errOut, err := runSimulateCommand(t, shortAnd("--seed", "4")...)
	if err != nil || errOut != "" {
		t.Fatalf("got %v and %q on standard error", err, errOut)
	}
	var r simulated
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Visitors != 120 || r.LetIn != 120 || r.Queued == 0 {
		t.Errorf("got %+v, want 120 visitors let in, some of whom waited", r)
	}
	if !strings.HasPrefix(r.Command, "ropeline-bench simulate --arrivals") || !strings.HasSuffix(r.Command, " --seed 4") {
		t.Errorf("got command %q", r.Command)
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && !strings.Contains(line, "ropeline-bench ") {
			t.Errorf("a line has %d columns, which 80 wrap: %s", n, line)
		}
	}
}

// The command that a run prints makes the same run again.
func TestSimulateSaysHowToDoItAgain(t *testing.T) {
	args := shortAnd("--fault", "pause:node=1.2,at=30s,for=10s", "--fault", "skew:site=2,by=-300ms", "--site-weights", "0.7,0.3", "--share-freeze", "0s", "--delay", "0s")
	first, _, err := runSimulateCommand(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	var r simulated
	if err := json.Unmarshal([]byte(first), &r); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(r.Command)[2:]
	second, _, err := runSimulateCommand(t, words...)
	if err != nil || second != first {
		t.Errorf("%s\ngot another result, %v", r.Command, err)
	}
}

func TestShellQuoted(t *testing.T) {
	for s, want := range map[string]string{
		"plain-1.2:3,4=5/6": "plain-1.2:3,4=5/6", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~a": "'~a'", "ä": "'ä'",
	} {
		if got := shellQuoted(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
		if sh, err := exec.LookPath("sh"); err == nil {
			if out, err := exec.Command(sh, "-c", "printf %s "+shellQuoted(s)).Output(); err != nil || string(out) != s {
				t.Errorf("a shell reads %s as %q, %v", shellQuoted(s), out, err)
			}
		}
	}
}

func TestSimulateReadsTraces(t *testing.T) {
	testdata := filepath.Join("..", "..", "bench", "testdata")
	room := []string{"--total-active-users", "100", "--new-users-per-minute", "100", "--stay", "5s", "--session-duration", "10s"}
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"--trace", filepath.Join(testdata, "worldcup98-0707.csv"), "--scale", "0.001", "--for", "3m"}, 68},
		{[]string{"--arrivals", "flash:200/2m", "--scale", "0.5"}, 100},
		{[]string{"--arrivals", "uniform:200/2m", "--begin", "90s"}, 50},
	} {
		out, _, err := runSimulateCommand(t, append(tc.args, room...)...)
		if err != nil {
			t.Errorf("%v: %v", tc.args, err)
			continue
		}
		var r simulated
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if r.Visitors != tc.want {
			t.Errorf("%v: got %d visitors, want %d", tc.args, r.Visitors, tc.want)
		}
	}
}

func TestSimulateRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.csv", "minute,requests\n1998-07-07 18:00:00,many\n")
	for _, tc := range []struct {
		args string
		want string
	}{
		{"", "--total-active-users and --new-users-per-minute missing"},
		{"--total-active-users 5 --new-users-per-minute 5", "Give one of --trace FILE and --arrivals SHAPE"},
		{"SHORT --trace x", "Give one of"},
		{"SHORT --total-active-users 0", "a whole number from 1 to"},
		{"SHORT --new-users-per-minute -1", "a whole number from 1 to"},
		{"SHORT --policy strict", `"strict" is not allowed: one of escrow, even, curve, counter, open`},
		{"SHORT --on-partition close", "hold, open"},
		{"SHORT --fault join:site=1,for=3s", "for means nothing here"},
		{"SHORT --fault limits:site=1,active=0", "a whole number from 1 to"},
		{"SHORT --fault limits:site=1", "active,rate,session is missing"},
		{"SHORT --fault disk-full:site=1", "for is missing"},
		{"SHORT --method lifo", "fifo, random, passthrough, reject"},
		{"SHORT --stay 0s", "a duration from 1ms to"},
		{"SHORT --site-weights 0.5", "1 site weights for 2 sites"},
		{"SHORT --site-weights 0.5,-1", `"-1" is not allowed`},
		{"SHORT --site-weights 0,0", "all site weights are 0"},
		{"SHORT --sites 0", "from 1 to 1000"},
		{"SHORT --sites 1000 --nodes 1000", "1000 nodes at each of 1000 sites"},
		{"SHORT --loss 1.5", "a number from 0 to 1"},
		{"SHORT --abandon 1.5", "a number from 0 to 1"},
		{"SHORT --old-passes 0.6", "a number from 0 to 0.5"},
		{"SHORT --delay 61s", "--delay"},
		{"SHORT --disk-delay 61s", "--disk-delay"},
		{"SHORT --tick 9ms", "a duration from 10ms to 250ms"},
		{"SHORT --tick 251ms", "a duration from 10ms to 250ms"},
		{"SHORT --bucket-span 1500ms", "bucket-span"},
		{"SHORT --fault partition:site=3,from=1m,for=10s", "there is no site 3; the sites are 1 to 2"},
		{"SHORT --fault partition:site=2,from=1h,for=10s", "from 1h0m0s is outside of the run"},
		{"SHORT --fault partition:site=2", "for is missing"},
		{"SHORT --fault crash:node=1.9", "there is no node 9 at a site"},
		{"SHORT --fault melt:site=1", `there is no kind "melt"; allowed are partition, crash`},
		{"SHORT --fault crash:site=1,by=3s", "by means nothing here"},
		{"SHORT --seed -1", "--seed"},
		{"SHORT --arrivals wave:5/1m", `there is no "wave"; allowed are uniform and flash`},
		{"SHORT --scale 0", "--scale"},
		{"SHORT --scale 1e-9", "leaves nobody"},
		{"SHORT --begin 2m", "--begin: nobody comes after 2m0s"},
		{"SHORT extra", `"extra" is not understood`},
		{"--total-active-users 5 --new-users-per-minute 5 --trace " + bad, bad + `:2: "many" is not a number of requests`},
		{"--total-active-users 5 --new-users-per-minute 5 --trace " + filepath.Join(dir, "none"), "no such file"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			out, _, err := runSimulateCommand(t, strings.Fields(strings.ReplaceAll(tc.args, "SHORT", strings.Join(short, " ")))...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
			if _, usage := errors.AsType[cli.UsageError](err); !usage {
				t.Errorf("%v is no usage error", err)
			}
			if strings.Contains(err.Error(), "sim: bad config") || out != "" {
				t.Errorf("got %q and %q on standard output", err, out)
			}
		})
	}
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]sim.Fault{
		"partition:site=2,from=30m,for=10m":        {Kind: sim.Partition, Site: 2, From: 30 * time.Minute, For: 10 * time.Minute},
		"partition:site=2,peer=1,for=1s,oneway":    {Kind: sim.Partition, Site: 2, Peer: 1, For: time.Second, OneWay: true},
		"crash:node=1.2,at=45m":                    {Kind: sim.Crash, Site: 1, Node: 2, From: 45 * time.Minute},
		"skew:node=3.1,by=-3s":                     {Kind: sim.Skew, Site: 3, Node: 1, By: -3 * time.Second},
		"link:site=1,by=200ms,loss=0.1,for=1h":     {Kind: sim.Link, Site: 1, By: 200 * time.Millisecond, Loss: 0.1, For: time.Hour},
		"leave:for=1m,site=4":                      {Kind: sim.Leave, Site: 4, For: time.Minute},
		"disk-full:node=1.2,at=3s,for=1m":          {Kind: sim.DiskFull, Site: 1, Node: 2, From: 3 * time.Second, For: time.Minute},
		"disk-slow:site=1,for=1m,by=300ms":         {Kind: sim.DiskSlow, Site: 1, For: time.Minute, By: 300 * time.Millisecond},
		"policy:site=2,at=1m,for=5s,to=open":       {Kind: sim.Policy, Site: 2, From: time.Minute, For: 5 * time.Second, To: room.Open},
		"remake:node=2.1,at=1m,for=5s":             {Kind: sim.Remake, Site: 2, Node: 1, From: time.Minute, For: 5 * time.Second},
		"limits:node=2.1,at=1m,active=7,rate=9":    {Kind: sim.Limits, Site: 2, Node: 1, From: time.Minute, Active: 7, Rate: 9},
		"join:site=3,at=1m":                        {Kind: sim.Join, Site: 3, From: time.Minute},
		"partition:oneway=true,node=1.1,for=2h30m": {Kind: sim.Partition, Site: 1, Node: 1, For: 150 * time.Minute, OneWay: true},
	} {
		if got, err := parseFault(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                        `there is no kind ""`,
		"crash":                   `there is no key ""; allowed are at, active`,
		"crash:site":              "site has no value; write site=…",
		"crash:site=0":            `site: "0" is not allowed: a whole number from 1 to 1000`,
		"crash:node=1":            "site and node, both counted from 1, such as 1.2",
		"crash:node=1.x":          `node: "x" is not allowed`,
		"crash:site=1,node=1.1":   "node is said twice",
		"crash:site=1,at=1m,at=2": "from is said twice",
		"crash:site=1,for=0s":     "for: ",
		"skew:site=1,by=soon":     `by: "soon" is not allowed: a duration`,
		"link:site=1,loss=2":      "loss: ",
		"link:site=1,oneway=no":   "oneway stands alone",
		"crash:site=1,":           `no key ""`,
	} {
		if _, err := parseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("partition:site=2,peer=1,for=1s,oneway")
	f.Add("link:site=1,by=200ms,loss=0.1,for=1h")
	f.Add("limits:node=2.1,at=1m,active=7,rate=9")
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := parseFault(text)
		if err == nil && (fault.Site < 0 || fault.Node < 0 || fault.Peer < 0 || fault.Active < 0 || fault.Rate < 0 || fault.From < 0 || fault.For < 0 || !(fault.Loss >= 0 && fault.Loss <= 1)) {
			t.Errorf("%q became %+v", text, fault)
		}
	})
}

// The binary, run twice with the same seed, prints the same bytes; another seed,
// others.
func TestSimulateBinaryIsDeterministic(t *testing.T) {
	single.Goroutine(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(seed int, procs string) string {
		args := shortAnd("--seed", strconv.Itoa(seed), "--loss", "0.05", "--roam", "0.1",
			"--jitter", "0.5", "--fault", "crash:node=2.1,at=1m,for=20s")
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"simulate"}, args...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1", "GOMAXPROCS="+procs)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		return string(out)
	}
	first := run(1, "1")
	if second := run(1, "2"); second != first {
		t.Error("the same seed gave other bytes")
	}
	if run(2, "2") == first {
		t.Error("another seed gave the same bytes")
	}
}

func TestDocsExplainEverySimulateFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	newSimulateCommand().Flags().VisitAll(func(f *pflag.Flag) {
		flags++
		if f.Name != "help" && !strings.Contains(string(text), "`--"+f.Name) {
			t.Errorf("docs/simulator.md does not explain --%s", f.Name)
		}
	})
	if flags < 30 {
		t.Errorf("only %d flags were found", flags)
	}
}

// Every figure that the JSON has is explained, or counted among those that their
// names explain.
func TestDocsExplainEveryFigure(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[sim.Figures]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/simulator.md does not explain %s", name)
		}
	}
}
