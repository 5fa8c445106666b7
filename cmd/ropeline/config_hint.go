package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/nearest"
)

// isNoSetting reports whether a flag is about a command, of which json is the doctor's.
func isNoSetting(flag string) bool {
	return flag == "config" || flag == "help" || flag == "help-all" || flag == "json"
}

// unknownKey names what is allowed, the likeliest first. All of it is listed once.
func (r *configReader) unknownKey(key, field string, fs *pflag.FlagSet, more lists) error {
	if field == "" && (isBrought(key) || key == "description") {
		return errOutsideTheList
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !isNoSetting(f.Name) {
			names = append(names, f.Name)
		}
	})
	for name := range more {
		if !isBrought(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	hint := ""
	if best, ok := nearest.Name(key, names); ok {
		hint = fmt.Sprintf("; did you mean %q?", best)
	}
	all := strings.Join(names, ", ")
	if r.told[all] {
		return fmt.Errorf("unknown key%s", hint)
	}
	r.told[all] = true
	return fmt.Errorf("unknown key%s Allowed are %s", cmp.Or(hint, "."), all)
}
