package expr

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
)

// MaxListSize is how many elements a list may have.
const MaxListSize = 1 << 18

// List is a set of addresses or of strings that expressions name. It does not
// change after it was made, and any number of expressions may share it.
type List struct {
	kind      kind
	addresses *netipx.IPSet
	strings   map[string]struct{}
}

// Lists are the lists that expressions may name, by their names without the $.
// Names are of lower-case letters, digits, underscores and dots.
type Lists map[string]*List

// IsListName reports whether a list may have that name.
func IsListName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

// ItemError says that an item cannot be in a list.
type ItemError struct {
	Index   int // from 0
	Item    string
	Problem string
}

// Error implements error.
func (e *ItemError) Error() string {
	return fmt.Sprintf("element %d, %q: %s", e.Index+1, e.Item, e.Problem)
}

// AddressList returns a list of addresses from items that are an address
// (192.0.2.7), a network (2001:db8::/32) or a range (10.0.0.1..10.0.0.9). The
// error joins an *ItemError for each item that is none of these.
func AddressList(items []string) (*List, error) {
	if len(items) > MaxListSize {
		return nil, fmt.Errorf("a list of %d elements; %d are allowed", len(items), MaxListSize)
	}
	var set netipx.IPSetBuilder
	var errs []error
	for i, item := range items {
		from, to, isRange := strings.Cut(strings.TrimSpace(item), "..")
		r, problem := addressRange(from)
		if isRange && problem == "" {
			var last netipx.IPRange
			if last, problem = addressRange(to); problem == "" {
				r, problem = spanAddresses(r, last)
			}
		}
		if problem != "" {
			errs = append(errs, &ItemError{i, item, problem})
			continue
		}
		set.AddRange(r)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	all, err := set.IPSet()
	if err != nil {
		return nil, fmt.Errorf("merge addresses: %w", err)
	}
	return &List{kind: address, addresses: all}, nil
}

// StringList returns a list of strings, which are compared as they are.
func StringList(items []string) (*List, error) {
	if len(items) > MaxListSize {
		return nil, fmt.Errorf("a list of %d elements; %d are allowed", len(items), MaxListSize)
	}
	all := make(map[string]struct{}, len(items))
	for _, item := range items {
		all[item] = struct{}{}
	}
	return &List{kind: text, strings: all}, nil
}

// names returns the names of the lists, with the $.
func (l Lists) names() []string {
	names := slices.Collect(maps.Keys(l))
	for i, n := range names {
		names[i] = "$" + n
	}
	return names
}

// addressRange reads an address or a network. The problem says what is wrong
// with s, and is "" where nothing is.
func addressRange(s string) (r netipx.IPRange, problem string) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return r, "this is not an IP address"
		}
		a = a.Unmap()
		return netipx.IPRangeFrom(a, a), ""
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return r, "this is not a network: want an address, / and the number of its leading bits"
	}
	if p != p.Masked() {
		return r, fmt.Sprintf("the address has bits behind the first %d; the network is %v", p.Bits(), p.Masked())
	}
	if p.Addr().Is4In6() {
		// In IPv6's clothes the first 96 bits are the clothes.
		if p.Bits() < 96 {
			return r, "this network is part IPv4 and part IPv6; write two"
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return netipx.RangeOfPrefix(p), ""
}

// spanAddresses returns the range from one address to another.
func spanAddresses(first, last netipx.IPRange) (r netipx.IPRange, problem string) {
	if first.From() != first.To() || last.From() != last.To() {
		return r, "a range goes from an address to an address, not to a network"
	}
	if r = netipx.IPRangeFrom(first.From(), last.From()); r.IsValid() {
		return r, ""
	}
	if first.From().Is4() != last.From().Is4() {
		return r, "a range is either of IPv4 or of IPv6"
	}
	return r, "this range is empty: it ends before it begins"
}
