package node

import (
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

// How facts come to be on disk as a whole. That all of a writer's facts are known up to a stamp is true only with all
// of them, and with what has taken their places: a disk that has some of a change would, after a crash, have the node tell others that it
// has what it has not. So facts that do not go in one batch are first put beside those that are there. They count
// with the batch that says so, and are moved then.

const (
	factsObject = "facts"      // each fact under a name of its own
	asideObject = "facts-next" // the same, of those that are to come in their places
	wholeKey    = "whole"      // all of these are there
)

const (
	// maxFactBatch bounds the facts of one batch, in bytes: a store takes only so much of
	// one object at once, and rights shall not wait long for facts.
	maxFactBatch = 1 << 20

	// factCost is what a fact takes beside its name and its value.
	factCost = 128
)

// factsStep is what is done with facts in a batch.
type factsStep int8

const (
	putAside factsStep = iota
	putInPlace
	takeAside // from where they were put: away
)

// factsBatches is facts on their way to the disk. The zero value is done.
type factsBatches struct {
	parts []crdt.Part // without a value: is to be removed
	step  factsStep
	from  int  // with which of the parts it goes on
	aside bool // they do not go in one batch
}

func newFactsBatches(parts []crdt.Part) factsBatches {
	f := factsBatches{parts: parts, step: putInPlace}
	if _, left := f.next(); !left.done() && slices.ContainsFunc(parts, func(p crdt.Part) bool { return p.Value != nil }) {
		f.step, f.aside = putAside, true
	}
	return f
}

func (f factsBatches) done() bool { return len(f.parts) == 0 }

// next returns the next batch, and what is left once it is durable.
func (f factsBatches) next() (batch []durable.Write, left factsBatches) {
	if f.done() {
		return nil, f
	}
	object := asideObject
	if f.step == putInPlace {
		object = factsObject
	}
	for size := 0; f.from < len(f.parts) && size < maxFactBatch; f.from++ {
		p := f.parts[f.from]
		if p.Value == nil && f.step != putInPlace {
			continue // what is there too long does no harm
		}
		if f.step == takeAside {
			p.Value = nil
		}
		size += factCost + len(p.Name) + len(p.Value)
		batch = append(batch, durable.Write{Object: object, Key: p.Name, Value: p.Value})
	}
	switch {
	case f.from < len(f.parts):
		return batch, f
	case f.step == putAside:
		batch = append(batch, durable.Write{Object: object, Key: wholeKey, Value: []byte{1}})
	case f.step == takeAside:
		batch = append(batch, durable.Write{Object: object, Key: wholeKey})
	}
	if f.step == takeAside || !f.aside {
		return batch, factsBatches{}
	}
	f.step, f.from = f.step+1, 0
	return batch, f
}

// goOn returns what is left to do with what an earlier start has put aside, and adds to the facts what counts of it.
func goOn(facts, aside map[string][]byte) factsBatches {
	_, whole := aside[wholeKey]
	f := factsBatches{step: takeAside, aside: true}
	for name, value := range aside {
		if name == wholeKey {
			continue
		}
		f.parts = append(f.parts, crdt.Part{Name: name, Value: value})
		if whole {
			facts[name] = value
		}
	}
	if whole {
		f.step = putInPlace
	}
	return f
}
