package ticket

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// RuleNames returns the names of all rules as flags have them, in the order of the constants.
func RuleNames() []string {
	return []string{
		"lease-guard", "restart-block", "give-before-send", "bound-before-use", "open-block-only",
		"count-until-block-ends", "recovery-lock", "final-ledgers", "one-minter", "rate-cools", "restart-cools",
		"loan-kept", "born-once", "receive-before-use", "fence", "pause-check", "fresh-mint", "minted-with-gifts",
	}
}

// ParseRules reads names of rules, separated by commas; none if text is empty. A name that
// is no rule's is an error that lists those that are.
func ParseRules(text string) (r Rules, err error) {
	if text == "" {
		return 0, nil
	}
	names := RuleNames()
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return 0, fmt.Errorf("there is no rule %q; there are %s", name, strings.Join(names, ", "))
		}
		r |= 1 << i
	}
	return r, nil
}

// String returns what ParseRules reads.
func (r Rules) String() string {
	var names []string
	for all := RuleNames(); r != 0; r &= r - 1 {
		names = append(names, all[bits.TrailingZeros32(uint32(r))])
	}
	return strings.Join(names, ",")
}

// Flag returns the flag of programs that leave these rules out, after a space; nothing if
// there are none.
func (r Rules) Flag() string {
	if r == 0 {
		return ""
	}
	return " --leave-out " + r.String()
}
