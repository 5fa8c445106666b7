package durable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stores are what every store is tested as.
var stores = map[string]func(t *testing.T) Store{
	"file": func(t *testing.T) Store { return openFile(t, filepath.Join(t.TempDir(), "store")) },
	"memory": func(t *testing.T) Store {
		m, err := NewMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	},
}

func openFile(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func commit(t testing.TB, s Store, batch ...Write) {
	t.Helper()
	if err := s.Commit(batch); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, s Store) []string {
	t.Helper()
	all := []string{}
	err := s.Load(func(w Write) bool {
		all = append(all, fmt.Sprintf("%s/%s=%s", w.Object, w.Key, w.Value))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantContent(t testing.TB, s Store, want ...string) {
	t.Helper()
	if got := content(t, s); !slices.Equal(got, want) {
		t.Errorf("the store holds %q, want %q", got, want)
	}
}

func TestStoreKeepsTheLastWriteOfABatch(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			commit(t, s, Write{"b", "k", []byte("1")}, Write{"a", "k", []byte("2")}, Write{"b", "k", []byte("3")}, Write{"b", "l", []byte("4")})
			commit(t, s, Write{"b", "l", nil}, Write{"a", "empty", []byte{}}, Write{"never", "there", nil})
			wantContent(t, s, "a/empty=", "a/k=2", "b/k=3")
			if v, err := s.Get("a", "empty"); err != nil || v == nil {
				t.Errorf("an empty value reads as %v, %v; want one that is not nil", v, err)
			}
			if v, err := s.Get("b", "l"); err != nil || v != nil {
				t.Errorf("a deleted value reads as %v, %v", v, err)
			}
		})
	}
}

func TestStoreOwnsItsMemory(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			value := []byte("given")
			commit(t, s, Write{"o", "k", value})
			copy(value, "XXXXX")
			got, _ := s.Get("o", "k")
			copy(got, "YYYYY")
			if got, _ = s.Get("o", "k"); string(got) != "given" {
				t.Errorf("a caller changed what is stored to %q", got)
			}
		})
	}
}

func TestStoreRefusesWhatIsBeyondItsLimits(t *testing.T) {
	long := strings.Repeat("x", MaxKey+1)
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for what, w := range map[string]Write{
				"no object":       {"", "k", nil},
				"long object":     {long[:MaxObjectName+1], "k", nil},
				"zero in object":  {"a\x00b", "k", nil},
				"no key":          {"o", "", nil},
				"long key":        {"o", long, nil},
				"value too large": {"o", "k", make([]byte, MaxValue+1)},
			} {
				if err := s.Commit([]Write{{"o", "good", []byte("1")}, w}); !errors.Is(err, ErrLimit) {
					t.Errorf("%s: commit returned %v, want ErrLimit", what, err)
				}
			}
			wantContent(t, s)
			commit(t, s, Write{long[:MaxObjectName], long[:MaxKey], make([]byte, MaxValue)})
		})
	}
}

// TestStoreListsAsASortedSliceDoes compares lists of every kind with the plain way.
func TestStoreListsAsASortedSliceDoes(t *testing.T) {
	keys := []string{"a", "a\x00", "a\x01", "ab", "b", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var batch []Write
			for _, object := range []string{"n", "o", "o\x01", "p"} {
				for _, key := range keys {
					batch = append(batch, Write{object, key, []byte(object + key)})
				}
			}
			commit(t, s, batch...)
			rng := rand.New(rand.NewPCG(1, 1))
			pick := func() string { return append([]string{"", "", "bb"}, keys...)[rng.IntN(len(keys)+3)] }
			for range 2000 {
				r := Range{Prefix: pick(), Start: pick(), End: pick(), Limit: rng.IntN(4), Reverse: rng.IntN(2) == 0}
				if rng.IntN(2) == 0 {
					r.Prefix = ""
				}
				var got []string
				err := s.List("o", r, func(key string, value []byte) bool {
					if string(value) != "o"+key {
						t.Errorf("key %q has the value %q", key, value)
					}
					got = append(got, key)
					return true
				})
				if want := plainList(keys, r); err != nil || !slices.Equal(got, want) {
					t.Fatalf("list %+v = %q, %v, want %q", r, got, err, want)
				}
			}
		})
	}
}

// plainList is what a list has to give, in the plainest way.
func plainList(keys []string, r Range) []string {
	var out []string
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if strings.HasPrefix(key, r.Prefix) && key >= r.Start && (r.End == "" || key < r.End) {
			out = append(out, key)
		}
	}
	if r.Reverse {
		slices.Reverse(out)
	}
	if r.Limit > 0 {
		out = out[:min(r.Limit, len(out))]
	}
	return out
}

func TestStoreStopsWhenTheReaderHasEnough(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			commit(t, s, Write{"o", "a", []byte("1")}, Write{"o", "b", []byte("2")})
			n := 0
			if err := s.List("o", Range{}, func(string, []byte) bool { n++; return false }); err != nil || n != 1 {
				t.Errorf("list yielded %d keys (%v) to a reader who wants one", n, err)
			}
			n = 0
			if err := s.Load(func(Write) bool { n++; return false }); err != nil || n != 1 {
				t.Errorf("load yielded %d writes (%v) to a reader who wants one", n, err)
			}
		})
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			commit(t, s, Write{"o", "k", []byte("1")})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Commit([]Write{{"o", "k", []byte("2")}}); !errors.Is(err, ErrClosed) {
				t.Errorf("commit returned %v, want ErrClosed", err)
			}
			if _, err := s.Get("o", "k"); !errors.Is(err, ErrClosed) {
				t.Errorf("get returned %v, want ErrClosed", err)
			}
			if err := s.Load(func(Write) bool { return true }); !errors.Is(err, ErrClosed) {
				t.Errorf("load returned %v, want ErrClosed", err)
			}
		})
	}
}

// TestFileEqualsMemory commits random batches to both, over reopenings.
func TestFileEqualsMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	file := openFile(t, path)
	memory, _ := NewMemory(nil)
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 60 {
		var batch []Write
		for range 1 + rng.IntN(40) {
			w := Write{fmt.Sprint("o", rng.IntN(5)), fmt.Sprint("k", rng.IntN(60)), nil}
			if rng.IntN(3) > 0 {
				w.Value = bytes.Repeat([]byte{byte(round)}, rng.IntN(3000))
			}
			batch = append(batch, w)
		}
		commit(t, file, batch...)
		commit(t, memory, batch...)
		if round%10 == 9 {
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			file = openFile(t, path)
		}
		if got, want := content(t, file), content(t, memory); !slices.Equal(got, want) {
			t.Fatalf("round %d: the file holds %d entries, memory %d, or others", round, len(got), len(want))
		}
	}
}
