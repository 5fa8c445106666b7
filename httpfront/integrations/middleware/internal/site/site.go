// Package site has what is kept between a site and the waiting room in front of it:
// commands of the site, which visitors do not see, and passes, which the site does not.
package site

import (
	"net/http"
	"slices"
	"strings"
)

// Commands are the header fields of answers in which a site tells the room something.
var Commands = [...]string{"Cf-Waiting-Room-Command", "Ropeline-Command"}

// IsCommand reports whether a field of this name is one of Commands.
func IsCommand(name string) bool {
	return slices.ContainsFunc(Commands[:], func(c string) bool { return strings.EqualFold(c, name) })
}

// Revokes reports whether the value of a command has the session of the visitor ended.
func Revokes(value string) bool {
	for e := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.Trim(e, " \t"), "revoke") {
			return true
		}
	}
	return false
}

// ForeignCookies returns the value of a Cookie field without passes, of whichever room;
// "" if no cookie is left. What has no pass is returned as it is.
func ForeignCookies(list string) string {
	if !strings.Contains(list, cookieName) {
		return list
	}
	var kept []string
	for pair := range strings.SplitSeq(list, ";") {
		pair = strings.Trim(pair, " \t")
		if name, _, _ := strings.Cut(pair, "="); pair != "" && !isPass(strings.Trim(name, " \t")) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "; ")
}

const cookieName = "ropeline"

// isPass reports whether a cookie of this name is a pass. See cookie-suffix in
// docs/configuration.md.
func isPass(name string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "__Host-"), cookieName)
	return ok && (rest == "" || rest[0] == '_')
}

// LeaveUpgrades takes out of a request's fields what asks for another protocol than that of
// WebSockets: a switch to any other, to h2c above all, would carry requests past the node.
func LeaveUpgrades(h http.Header) {
	if kinds := h["Upgrade"]; len(kinds) != 1 || !strings.EqualFold(kinds[0], "websocket") {
		h.Del("Upgrade")
	}
	h.Del("Http2-Settings")
}
