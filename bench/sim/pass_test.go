package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// TestPassKeepsAllFields fills every field of a pass, of those too that it may
// get one day, and has it carried.
func TestPassKeepsAllFields(t *testing.T) {
	m := &machine{}
	r := registry{byID: map[crdt.NodeID]int32{}}
	m.identity = r.add(1, m, 0)
	var p node.Pass
	fill(reflect.ValueOf(&p).Elem(), 7)
	p.Room, p.Ticket.Anchor = roomID, m.id
	small := r.pack(p)
	if got := r.open(&small); !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v\nwant %+v", got, p)
	}
	if got := r.open(&pass{}); got != (node.Pass{Room: roomID}) {
		t.Errorf("no pass becomes %+v", got)
	}
}

func fill(v reflect.Value, n int64) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1_800_000_000_000 + n)))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(time.Duration(n) * time.Millisecond))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+int64(i))
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n+int64(i))
		}
	case v.CanUint():
		v.SetUint(uint64(n))
	case v.CanInt():
		v.SetInt(n)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		panic("a pass has a field of kind " + v.Kind().String())
	}
}
