package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/nearest"
)

// unknownKey names what is allowed, the likeliest first.
func unknownKey(key string, fs *pflag.FlagSet, more lists) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	names = slices.AppendSeq(names, maps.Keys(more))
	slices.Sort(names)
	hint := ""
	if best, ok := nearest.Name(key, names); ok {
		hint = fmt.Sprintf("; did you mean %q?", best)
	}
	return fmt.Errorf("unknown key%s Allowed are %s", cmp.Or(hint, "."), strings.Join(names, ", "))
}
