package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// made returns a profile of stacks, innermost function first, with what each took.
func made(t *testing.T, stacks map[string]int64) *bytes.Buffer {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	functions := map[string]*profile.Location{}
	for stack, took := range stacks {
		s := &profile.Sample{Value: []int64{1, took}}
		for name := range strings.SplitSeq(stack, " ") {
			l := functions[name]
			if l == nil {
				id := uint64(len(functions) + 1)
				f := &profile.Function{ID: id, Name: name}
				l = &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
				functions[name] = l
				p.Function, p.Location = append(p.Function, f), append(p.Location, l)
			}
			s.Location = append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return &out
}

var stacks = map[string]int64{
	"syscall.write main.serve main.main":                                        600,
	"github.com/ropeline/ropeline/httpfront.(*T[...]).f<> main.serve main.main": 390,
	"main.never main.main":                                                      1,
}

func drawn(t *testing.T, c Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, made(t, stacks), c); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, &out)
		}
	}
	return out.String()
}

func TestFramesAreAsWideAsWhatTheyTook(t *testing.T) {
	svg := drawn(t, Config{Title: "a & b"})
	for text, want := range map[string]bool{
		"<title>main.serve: 99.9 %</title>": true, "<title>syscall.write: 60.5 %</title>": true,
		"httpfront.(*T).f&lt;&gt;</text>": true, "a &amp; b": true,
		"main.never": false, // too narrow to be seen
	} {
		if strings.Contains(svg, text) != want {
			t.Errorf("%q is in the picture: %v\n%s", text, !want, svg)
		}
	}
}

func TestTheSameProfileIsTheSamePicture(t *testing.T) {
	if first, second := drawn(t, Config{}), drawn(t, Config{}); first != second {
		t.Error("it is another one the second time")
	}
}

func TestKindsOfValues(t *testing.T) {
	if svg := drawn(t, Config{Kind: "samples"}); !strings.Contains(svg, "syscall.write: 33.3 %") {
		t.Errorf("samples are not counted:\n%s", svg)
	}
	if err := Write(io.Discard, made(t, stacks), Config{Kind: "space"}); err == nil {
		t.Error("a kind that is not there is drawn")
	}
	if err := Write(io.Discard, strings.NewReader("no profile"), Config{}); err == nil {
		t.Error("what is no profile is drawn")
	}
}

func TestProfilesOfNothing(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, made(t, nil), Config{}); err != nil || !strings.Contains(out.String(), "</svg>") {
		t.Errorf("got %v\n%s", err, &out)
	}
}
