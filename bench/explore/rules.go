package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/node/ticket"
)

// rule is a rule that can be left out, as flags name it.
type rule struct {
	name string
	bit  ticket.Rules
}

// rules are those that may matter here: in both searches there are no visitors who come back
// after a restart by old passes, and clocks agree.
func rules() []rule {
	return []rule{
		{"restart-block", ticket.RestartBlock},
		{"give-before-send", ticket.GiveBeforeSend},
		{"bound-before-use", ticket.BoundBeforeUse},
		{"recovery-lock", ticket.RecoveryLock},
		{"final-ledgers", ticket.FinalLedgers},
		{"one-minter", ticket.OneMinter},
		{"receive-before-use", ticket.ReceiveBeforeUse},
		{"fence", ticket.Fence},
		{"fresh-mint", ticket.FreshMint},
	}
}

func ruleNames() string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return strings.Join(names, ", ")
}

func parseRules(text string) (bits ticket.Rules, err error) {
	if text == "" {
		return 0, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(rules(), func(r rule) bool { return r.name == name })
		if i < 0 {
			return 0, fmt.Errorf("there is no rule %q; there are %s", name, ruleNames())
		}
		bits |= rules()[i].bit
	}
	return bits, nil
}

// leftOutFlag returns the flag that leaves these rules out.
func leftOutFlag(bits ticket.Rules) string {
	var names []string
	for _, r := range rules() {
		if bits&r.bit != 0 {
			names = append(names, r.name)
		}
	}
	if names == nil {
		return ""
	}
	return " -leave-out " + strings.Join(names, ",")
}
