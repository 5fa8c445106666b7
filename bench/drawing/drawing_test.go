package drawing

import (
	"bytes"
	"image/png"
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
		names, err := Write(dir, 40, picture)
		if err != nil || !slices.Equal(names, []string{"one.png", "one.svg"}) {
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
	if _, err := png.Decode(bytes.NewReader(first["one.png"])); err != nil {
		t.Error(err)
	}
}

func TestPicturesNeedTheirDirectory(t *testing.T) {
	picture := Picture{Name: "one", Width: vg.Inch, Height: vg.Inch, Draw: func(draw.Canvas) {}}
	if _, err := Write(filepath.Join(t.TempDir(), "none"), 40, picture); err == nil {
		t.Error("there is none, and no error")
	}
}
