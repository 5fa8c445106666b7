package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/lang"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node/nearest"
	"github.com/ropeline/ropeline/node/room"
)

// pageFileValue is the name of a file with a page; dst gets what is in it.
type pageFileValue struct{ dst *string }

func pageValue(dst *string) pflag.Value { return pageFileValue{dst} }

// String returns nothing: the page would be long, and whose it is is not known here.
func (v pageFileValue) String() string { return "" }
func (v pageFileValue) Type() string   { return "file" }
func (v pageFileValue) Set(path string) error {
	text, err := readSmall(path, page.TemplateMax)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	if _, _, err := page.Compile(string(text)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	*v.dst = string(text)
	return nil
}

// languageValue is the tag of one of the languages.
type languageValue struct{ dst *string }

func (v languageValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v languageValue) Type() string { return "tag" }
func (v languageValue) Set(s string) error {
	if lang.Of(s) == nil {
		var tags []string
		for _, l := range lang.All() {
			tags = append(tags, l.Tag())
		}
		hint := ""
		if best, ok := nearest.Name(s, tags); ok {
			hint = fmt.Sprintf("; did you mean %s?", best)
		}
		return fmt.Errorf("%q is not allowed: one of %s%s", s, strings.Join(tags, ", "), hint)
	}
	*v.dst = s
	return nil
}

// messageValue is what the operator has to say.
type messageValue struct{ dst *string }

func (v messageValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v messageValue) Type() string { return "text" }
func (v messageValue) Set(s string) error {
	s = strings.TrimRight(s, "\n") // of a block of YAML
	if err := page.CheckMessage(s); err != nil {
		return err
	}
	*v.dst = s
	return nil
}

// sourcesValue is a list of sites; each use of the flag adds to it.
type sourcesValue struct{ dst *[]string }

func (v sourcesValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strings.Join(*v.dst, ",")
}
func (v sourcesValue) Type() string { return "site,..." }
func (v sourcesValue) clear()       { *v.dst = nil }
func (v sourcesValue) Set(s string) error {
	all := slices.Clone(*v.dst)
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if one == "self" || one == "none" {
			one = "'" + one + "'" // which would take two pairs of quotes in YAML
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
		if err := page.CheckFrameAncestors(all); err != nil {
			return err
		}
	}
	*v.dst = all
	return nil
}

// actionValue is what a rule does.
type actionValue struct{ dst *room.RuleAction }

func (v actionValue) String() string {
	if v.dst == nil {
		return ""
	}
	return string(*v.dst)
}
func (v actionValue) Type() string { return "word" }
func (v actionValue) Set(s string) error {
	if s != string(room.Bypass) && s != "bypass_waiting_room" {
		return fmt.Errorf("%q is not allowed: %s, which is written bypass_waiting_room elsewhere, is the only action there is", s, room.Bypass)
	}
	*v.dst = room.Bypass
	return nil
}
