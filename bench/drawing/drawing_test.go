package drawing

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func TestPicturesAreTheSameAgain(t *testing.T) {
	p := NewPlot("a title")
	p.Add(Grid())
	picture := Picture{Name: "one", Width: 2 * vg.Inch, Height: vg.Inch, Draw: func(c draw.Canvas) { p.Draw(c) }}
	var first map[string][]byte
	for range 2 {
		dir := t.TempDir()
		names, err := Write(dir, picture)
		if err != nil || !slices.Equal(names, []string{"one.svg"}) {
			t.Fatalf("got %v, %v", names, err)
		}
		made := map[string][]byte{}
		for _, name := range names {
			if made[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(first[name], made[name]) {
				t.Errorf("%s is another one the second time", name)
			}
		}
		first = made
	}
}

func TestPicturesNeedTheirDirectory(t *testing.T) {
	picture := Picture{Name: "one", Width: vg.Inch, Height: vg.Inch, Draw: func(draw.Canvas) {}}
	if _, err := Write(filepath.Join(t.TempDir(), "none"), picture); err == nil {
		t.Error("there is none, and no error")
	}
}
