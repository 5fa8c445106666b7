package node

import (
	"github.com/ropeline/ropeline/crdt"
)

// Ledger is what one node has of a room's rights, and what it has dealt with others.
type Ledger struct {
	Node     string          `json:"node"` // id
	Name     string          `json:"name"`
	Site     string          `json:"site"`
	Rights   RightsStatus    `json:"rights"`
	Accounts []AccountStatus `json:"accounts"`
}

// AccountStatus is what a node has dealt with another one, all in all.
type AccountStatus struct {
	Node     string       `json:"node"` // id of the other one
	Gave     AmountStatus `json:"gave"`
	Received AmountStatus `json:"received"`
	Pending  bool         `json:"pending"` // the other one has not said yet that it has all that was given
}

// Ledger returns what this node has of a room's rights; false if it keeps no such room, or
// has not opened yet. Any goroutine may call it.
func (n *Node) Ledger(id crdt.RoomID) (Ledger, bool) {
	r := n.core.shownRoom(id)
	if r == nil {
		return Ledger{}, false
	}
	l := Ledger{Node: n.core.self.Node.String(), Name: n.cfg.Name, Site: n.core.site, Rights: *r.rightsStatus(), Accounts: []AccountStatus{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return Ledger{}, false
	}
	for _, a := range r.rights.Dealings() {
		l.Accounts = append(l.Accounts, AccountStatus{nameOf(a.Node), amountStatus(a.Gave), amountStatus(a.Received), a.Pending})
	}
	return l, true
}
