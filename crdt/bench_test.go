package crdt

import (
	"fmt"
	"testing"
	"time"
)

var benchNow = time.Unix(1_800_000_000, 0)

func BenchmarkRowsMerge(b *testing.B) {
	rows := busyRows(12, 100, benchNow)
	into := rows.Clone()
	b.ReportAllocs()
	for b.Loop() {
		into.Merge(rows)
	}
}

func BenchmarkRowsDeltaOfOneCell(b *testing.B) {
	rows, owner := new(Rows), Incarnation{testNode(0), 3}
	rows.Merge(busyRows(1, 100, benchNow))
	rows.Open(owner, "site", benchNow)
	known := rows.Digest()[owner]
	rows.Add(owner, Key{Room: RoomID{7, 0, 'r'}, Kind: Active}, 1, 0, benchNow)
	b.ReportAllocs()
	for b.Loop() {
		if d := rows.DeltaOf(owner, known, 256<<10); len(d.Pieces) != 1 {
			b.Fatal("no delta")
		}
	}
}

func BenchmarkRowsDeltaCut(b *testing.B) {
	rows := busyRows(12, 100, benchNow)
	b.ReportAllocs()
	for b.Loop() {
		rows.Delta(nil, 256<<10)
	}
}

func BenchmarkRowDeltaEncode(b *testing.B) {
	d := busyRows(1, 100, benchNow).Delta(nil, 0)
	buf := must(d.AppendBinary(nil))
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = must(d.AppendBinary(buf[:0]))
	}
}

func BenchmarkRowDeltaDecode(b *testing.B) {
	buf := must(busyRows(1, 100, benchNow).Delta(nil, 0).AppendBinary(nil))
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		must(DecodeRowDelta(buf))
	}
}

func BenchmarkRowsApply(b *testing.B) {
	d := busyRows(1, 100, benchNow).Delta(nil, 0)
	rows := new(Rows)
	b.ReportAllocs()
	for b.Loop() {
		must(rows.Apply(d.Pieces[0], benchNow))
	}
}

func BenchmarkCountSite(b *testing.B) {
	rows := busyRows(12, 100, benchNow)
	b.ReportAllocs()
	for b.Loop() {
		rows.CountSite("site", RoomID{7, 0, 'r'}, benchNow, Retention{})
	}
}

func BenchmarkSummaryDelta(b *testing.B) {
	rows, sums, by := busyRows(12, 100, benchNow), new(Summaries), Incarnation{testNode(0), 1}
	sums.TakeOver("site", by, 0, benchNow)
	for room := range rows.Rooms("site") {
		sums.Publish("site", by, room, Summarize(rows.CountSite("site", room, benchNow, Retention{}), time.Minute), benchNow)
	}
	b.ReportAllocs()
	for b.Loop() {
		must(sums.Delta(nil, 256<<10).AppendBinary(nil))
	}
}

// BenchmarkLWWOneChange is what is stored and sent of one change in a map of a thousand rooms and a hundred nodes.
func BenchmarkLWWOneChange(b *testing.B) {
	var m LWW
	at := Stamp{Node: NodeID{1}}
	set := func(key string) {
		at.Wall++
		if err := m.Set(key, []byte("value"), at); err != nil {
			b.Fatal(err)
		}
	}
	for room := range 1000 {
		for node := range 100 {
			at.Node = NodeID{byte(node)}
			set(fmt.Sprintf("told/%032x/%032x", room, node))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		saved, sent := m.Changes(), m.Digest()
		set("told/" + testRoom(7).String())
		if len(m.Parts(saved)) != 2 || len(m.Delta(sent, 0).Pieces) != 1 {
			b.Fatal("one change is not told")
		}
	}
}
