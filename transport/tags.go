package transport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A member's name in serf is its incarnation: ID and boot. A restarted node
// is therefore a new member from the first packet on and need not wait until
// the old one is given up, whatever address it comes back on; and nobody can
// take a name without the certificate of that ID, since names are proven by
// a direct call before they count.
func memberName(id PeerID, boot uint64) string {
	return id.String() + "." + strconv.FormatUint(boot, 10)
}

func parseMemberName(name string) (PeerID, uint64, error) {
	hexID, digits, ok := strings.Cut(name, ".")
	if !ok {
		return PeerID{}, 0, fmt.Errorf("member name %q: want ID.BOOT", name)
	}
	id, err := ParsePeerID(hexID)
	if err != nil {
		return PeerID{}, 0, fmt.Errorf("member name: %w", err)
	}
	boot, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return PeerID{}, 0, fmt.Errorf("member name %q: boot: %w", name, err)
	}
	if memberName(id, boot) != name {
		return PeerID{}, 0, fmt.Errorf("member name %q: want %q", name, memberName(id, boot))
	}
	return id, boot, nil
}

// Keys of the tags that travel with membership. They are short because every
// exchange carries them for every member.
const (
	tagName  = "n"
	tagSite  = "s"
	tagReady = "r" // "1" or absent

	tagPending = "p" // "1" or absent: the node is of no mesh yet
)

// tags is what a member says about itself.
type tags struct {
	name, site string
	ready      bool
	pending    bool
}

func (t tags) encode() map[string]string {
	m := map[string]string{tagName: t.name, tagSite: t.site}
	if t.ready {
		m[tagReady] = "1"
	}
	if t.pending {
		m[tagPending] = "1"
	}
	return m
}

// decodeTags accepts exactly what encode makes.
func decodeTags(m map[string]string) (tags, error) {
	t := tags{name: m[tagName], site: m[tagSite], ready: m[tagReady] == "1", pending: m[tagPending] == "1"}
	if err := checkLabel("name", t.name, maxNameLen); err != nil {
		return tags{}, err
	}
	if err := checkLabel("site", t.site, maxSiteLen); err != nil {
		return tags{}, err
	}
	want := 2
	for _, key := range []string{tagReady, tagPending} {
		v, ok := m[key]
		if ok && v != "1" {
			return tags{}, fmt.Errorf("tag %q is %q, want 1", key, v)
		}
		if ok {
			want++
		}
	}
	if len(m) != want {
		return tags{}, errors.New("unknown tags")
	}
	return t, nil
}
