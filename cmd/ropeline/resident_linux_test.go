package main

import (
	"os"
	"strings"
	"testing"
)

func TestMappings(t *testing.T) {
	const smaps = `00400000-01593000 r-xp 00000000 fe:00 42   /usr/local/bin/a program
Size:              17996 kB
Anonymous:             8 kB
VmFlags: rd ex mr mw me
01593000-02983000 r--p 01193000 fe:00 42   /usr/local/bin/a program
Anonymous:             0 kB
7f00-7f10 rw-p 00000000 00:00 0
`
	got, err := mappings(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{0x400000, 0x1593000, "r-xp", "/usr/local/bin/a program", 8 << 10},
		{0x1593000, 0x2983000, "r--p", "/usr/local/bin/a program", 0},
		{0x7f00, 0x7f10, "rw-p", "", 0},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("mapping %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestDropProgramGoesOn(t *testing.T) {
	before := residentFile(t)
	if err := dropProgram(); err != nil {
		t.Fatal(err)
	}
	if after := residentFile(t); after >= before {
		t.Errorf("%s of files are resident, before it was %s", after, before)
	}
}

// residentFile returns the line of /proc/self/status that tells how much of files is
// resident: of the same width whenever it is read, so that lines compare as numbers do.
func residentFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "RssFile:") {
			return line
		}
	}
	t.Skip("this kernel does not tell what is resident of files")
	return ""
}
