package node

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
)

// mentions looks for a node's id in memory, by following all that a value leads to, but functions and channels.
type mentions struct {
	of   crdt.NodeID
	name string
	seen map[place]bool
	ways map[string]bool // fields on the way, without what numbers and keys they have
}

type place struct {
	at uintptr
	n  int
	of reflect.Type
}

// inMemory returns, in order, on which ways a node's id is found in what another one has in memory.
func (m *machine) inMemory(id crdt.NodeID) []string {
	s := mentions{of: id, name: id.String(), seen: map[place]bool{}, ways: map[string]bool{}}
	s.follow(reflect.ValueOf(m.core), "core")
	return slices.Sorted(maps.Keys(s.ways))
}

func (s *mentions) follow(v reflect.Value, way string) {
	switch v.Kind() {
	case reflect.Pointer:
		if s.isNew(v, 0) {
			s.follow(v.Elem(), way)
		}
	case reflect.Interface:
		if !v.IsNil() {
			s.follow(v.Elem(), way)
		}
	case reflect.Struct:
		s.followStruct(v, way)
	case reflect.Map:
		if s.isNew(v, 0) {
			for entries := v.MapRange(); entries.Next(); {
				s.follow(entries.Key(), way+"[key]")
				s.follow(entries.Value(), way+"[]")
			}
		}
	case reflect.Slice, reflect.Array:
		s.followAll(v, way)
	case reflect.String:
		s.note(strings.Contains(v.String(), s.name) || strings.Contains(v.String(), string(s.of[:])), way)
	}
}

func (s *mentions) followStruct(v reflect.Value, way string) {
	t := v.Type()
	if t.PkgPath() == "sync/atomic" && strings.HasPrefix(t.Name(), "Pointer[") { // its first field is there for the type
		s.follow(reflect.NewAt(t.Field(0).Type.Elem().Elem(), v.Field(2).UnsafePointer()), way)
		return
	}
	for i := range t.NumField() {
		switch t.Field(i).Name {
		case "firsts", "shared": // who wrote what stays, and a few values of late
			continue
		}
		s.follow(v.Field(i), way+"."+t.Field(i).Name)
	}
}

func (s *mentions) followAll(v reflect.Value, way string) {
	switch elem := v.Type().Elem().Kind(); {
	case v.Kind() == reflect.Slice && !s.isNew(v, v.Len()):
	case v.Type() == reflect.TypeFor[crdt.NodeID]():
		is := true
		for i := range v.Len() {
			is = is && byte(v.Index(i).Uint()) == s.of[i]
		}
		s.note(is, way)
	case elem == reflect.Uint8 && v.Kind() == reflect.Slice:
		s.note(bytes.Contains(v.Bytes(), s.of[:]) || bytes.Contains(v.Bytes(), []byte(s.name)), way)
	case elem < reflect.Array && elem != reflect.Invalid: // numbers
	default:
		for i := range v.Len() {
			s.follow(v.Index(i), way+"[]")
		}
	}
}

// isNew reports whether what a value points to was not followed before.
func (s *mentions) isNew(v reflect.Value, n int) bool {
	p := place{v.Pointer(), n, v.Type()}
	is := !v.IsNil() && !s.seen[p]
	s.seen[p] = true
	return is
}

func (s *mentions) note(is bool, way string) {
	if is {
		s.ways[way] = true
	}
}
