package room

import (
	"errors"
	"strings"
	"testing"
)

// TestCookiesThatBrowsersDropAreRefused: with what to do instead.
func TestCookiesThatBrowsersDropAreRefused(t *testing.T) {
	for _, c := range []struct {
		set         CookieAttributes
		field, says string // empty: in order
	}{
		{set: CookieAttributes{}},
		{set: CookieAttributes{SameSiteAuto, SecureAuto, true}},
		{set: CookieAttributes{SameSiteNone, SecureAlways, true}},
		{set: CookieAttributes{SameSiteNone, SecureAuto, true}},
		{set: CookieAttributes{SameSiteAuto, SecureNever, false}},
		{set: CookieAttributes{SameSiteStrict, SecureNever, false}},
		{CookieAttributes{SameSite: "Lax"}, "cookie-attributes.samesite", `"Lax" is not allowed: want one of auto, lax, none, strict`},
		{CookieAttributes{Secure: "yes"}, "cookie-attributes.secure", `"yes" is not allowed: want one of auto, always, never`},
		{CookieAttributes{SameSiteNone, SecureNever, false}, "cookie-attributes.samesite", `take "secure: auto"`},
		{CookieAttributes{SameSiteAuto, SecureNever, true}, "cookie-attributes.partitioned", `take "secure: auto"`},
		{CookieAttributes{SameSiteLax, SecureAuto, true}, "cookie-attributes.partitioned", `take "samesite: auto"`},
		{CookieAttributes{SameSiteStrict, SecureAlways, true}, "cookie-attributes.partitioned", `take "samesite: auto"`},
	} {
		s := Settings{Name: "shop", TotalActiveUsers: 1, NewUsersPerMinute: 1, Front: Front{Cookie: c.set}}.WithDefaults()
		err := s.Validate()
		e, _ := errors.AsType[*FieldError](err)
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%+v: %v", c.set, err)
		case c.field != "" && (e == nil || e.Field != c.field || !strings.Contains(e.Reason(), c.says)):
			t.Errorf("%+v: got %v, want %s: … %s", c.set, err, c.field, c.says)
		}
	}
}
