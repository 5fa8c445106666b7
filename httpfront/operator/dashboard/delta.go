package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// keys names the lists whose items are told one by one, and the field by which an item
// is known. Everything else that changes is told whole.
var keys = map[string]string{"rooms": "id", "sites": "site", "nodes": "node", "limits": "id"}

// fields are an object of JSON. None of them is null: a field that is null and one that
// is left out are the same.
type fields map[string]json.RawMessage

// document is an encoded Snapshot or Detail, cut into the parts that change by
// themselves.
type document struct {
	fields fields
	lists  map[string]map[string]fields // by name, and by the key of the item
}

// cut encodes v, a struct.
func cut(v any) (document, error) {
	d := document{lists: map[string]map[string]fields{}}
	b, err := json.Marshal(v)
	if err != nil {
		return d, fmt.Errorf("encode %T: %w", v, err)
	}
	if d.fields, err = cutFields(b); err != nil {
		return d, fmt.Errorf("cut %T: %w", v, err)
	}
	if _, isDetail := v.(Detail); isDetail {
		return d, nil // its lists are short
	}
	for name, key := range keys {
		var items []json.RawMessage
		if raw, ok := d.fields[name]; ok {
			if err := json.Unmarshal(raw, &items); err != nil {
				return d, fmt.Errorf("cut %s: %w", name, err)
			}
			delete(d.fields, name)
		}
		list := make(map[string]fields, len(items))
		for _, item := range items {
			f, err := cutFields(item)
			if err != nil {
				return d, fmt.Errorf("cut %s: %w", name, err)
			}
			list[string(f[key])] = f
		}
		d.lists[name] = list
	}
	return d, nil
}

func cutFields(b []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	maps.DeleteFunc(f, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return f, nil
}

// whole encodes the document as one object: the fields, and the lists as arrays.
func (d document) whole() ([]byte, error) {
	all := make(map[string]any, len(d.fields)+len(d.lists))
	for name, v := range d.fields {
		all[name] = v
	}
	for name, list := range d.lists {
		items := make([]fields, 0, len(list))
		for _, key := range slices.Sorted(maps.Keys(list)) {
			items = append(items, list[key])
		}
		all[name] = items
	}
	return json.Marshal(all)
}

// delta is what turns one document into another.
type delta struct {
	Fields fields               `json:"fields"`
	Lists  map[string]listDelta `json:"lists"`
}

// listDelta is the same for a list. An item in Set has its key and the fields that are
// new or other, null for those that are gone; an item that was not there is appended.
type listDelta struct {
	Set  []fields          `json:"set,omitempty"`
	Gone []json.RawMessage `json:"gone,omitempty"` // keys
}

// since returns what turns before into d. It reports false if nothing does but the time.
func (d document) since(before document) (delta, bool) {
	out := delta{Fields: d.fields.since(before.fields), Lists: map[string]listDelta{}}
	for name, list := range d.lists {
		var l listDelta
		for _, key := range slices.Sorted(maps.Keys(list)) {
			if f := list[key].since(before.lists[name][key]); len(f) > 0 {
				f[keys[name]] = json.RawMessage(key)
				l.Set = append(l.Set, f)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(before.lists[name])) {
			if _, still := list[key]; !still {
				l.Gone = append(l.Gone, json.RawMessage(key))
			}
		}
		if len(l.Set)+len(l.Gone) > 0 {
			out.Lists[name] = l
		}
	}
	_, timed := out.Fields["time"]
	return out, len(out.Lists) > 0 || len(out.Fields) > 1 || len(out.Fields) == 1 && !timed
}

func (f fields) since(before fields) fields {
	out := fields{}
	for name, v := range f {
		if !bytes.Equal(v, before[name]) {
			out[name] = v
		}
	}
	for name := range before {
		if _, still := f[name]; !still {
			out[name] = json.RawMessage("null")
		}
	}
	return out
}
